/** Shows the camera, or one of several pictures. */

import { Camera, whyNoCamera } from "./camera.js";
import { byId, element, fill } from "./dom.js";
import { showLarge } from "./large_view.js";
import { largeOf } from "./tray.js";

const ENDED = "The camera stopped: it was unplugged, is in use by another program, or is no longer allowed.";

/** Fires "camera" when the camera starts or stops, and "shown" when another picture is shown. */
export class Stage extends EventTarget {
  camera;
  /** The picture that is shown; null for the camera or nothing. */
  picture = null;
  #part;
  #choice = { facing: "environment" };
  #drawn = null;
  #starting = false;
  #paused = false;

  /** @param {string} prefix of the ids of its elements */
  constructor(prefix = "") {
    super();
    this.#part = (id) => byId(prefix + id);
    this.camera = new Camera(this.#part("video"));
    this.camera.addEventListener("ended", () => {
      this.#note(ENDED);
      this.stopCamera();
    });
    this.#part("camera-start").addEventListener("click", () => this.startCamera());
    this.#part("camera-stop").addEventListener("click", () => this.stopCamera());
    this.#part("camera-back").addEventListener("click", () => this.show(null));
    this.#part("camera-choice").addEventListener("change", (event) => {
      const { facing, device } = event.target.selectedOptions[0].dataset;
      this.#choice = { facing, device };
      this.startCamera();
    });
    this.#part("still").addEventListener("click", () => showLarge(this.picture));
    this.#note(whyNoCamera() ?? "");
    this.#draw();
  }

  get usesCamera() {
    return this.camera.running && this.picture === null;
  }

  /** Whether the user chose the camera, even while it is starting or paused. */
  get prefersCamera() {
    return this.camera.running || this.#starting || this.#paused;
  }

  /** @param {boolean} show whether to show the camera rather than a picture */
  async startCamera({ show = true } = {}) {
    this.#note("");
    this.#starting = true;
    this.#draw();
    try {
      // False if it was stopped, or started again, in the meantime.
      if (!(await this.camera.start(this.#choice))) return;
      await this.#offerChoices();
      if (show) this.picture = null;
    } catch (error) {
      this.#note(error.message);
    }
    this.#starting = false;
    this.#draw();
    this.#fire("camera");
  }

  stopCamera() {
    this.camera.stop();
    this.#starting = false;
    this.#draw();
    this.#fire("camera");
  }

  /** Stops the camera while its view is hidden. */
  pause() {
    this.#paused ||= this.camera.running || this.#starting;
    if (this.#paused) this.stopCamera();
  }

  resume() {
    if (this.#paused) this.startCamera({ show: false });
    this.#paused = false;
  }

  show(picture) {
    if (this.picture === picture) return;
    this.picture = picture;
    this.#draw();
    this.#fire("shown");
  }

  /** Blinks to confirm that a picture was taken. */
  blink() {
    const viewer = this.#part("viewer");
    viewer.classList.remove("blink");
    // Forces a new layout, which restarts the animation.
    void viewer.offsetWidth;
    viewer.classList.add("blink");
  }

  async #draw() {
    const { picture } = this;
    const part = this.#part;
    part("video").hidden = !this.usesCamera;
    part("still").hidden = picture === null;
    part("viewer-empty").hidden = picture !== null || this.camera.running;
    this.#drawTools();
    if (picture === this.#drawn) return;
    this.#drawn = picture;
    // The old picture must not be mistaken for the next one.
    fill(part("still"));
    if (picture === null) return;
    const canvas = await largeOf(picture);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Picture ${picture.name}`);
    if (this.picture === picture) fill(part("still"), canvas);
  }

  /** One of three buttons for the camera is always there. */
  #drawTools() {
    const part = this.#part;
    const start = part("camera-start");
    // A second click would request the camera again.
    start.disabled = this.#starting || whyNoCamera() !== null;
    start.title = whyNoCamera() ?? "";
    start.hidden = this.camera.running;
    // Only one button of the view is the main one: with a picture, that is the one that teaches it.
    start.classList.toggle("primary", this.picture === null);
    part("camera-stop").hidden = !this.usesCamera;
    part("camera-back").hidden = !(this.camera.running && this.picture !== null);
    part("camera-choice-row").hidden = !this.usesCamera || part("camera-choice").options.length === 0;
    const fileIsMain = start.disabled && !this.#starting && this.picture === null && !this.camera.running;
    part("files").parentElement.classList.toggle("primary", fileIsMain);
  }

  #note(text) {
    this.#part("camera-note").textContent = text;
  }

  async #offerChoices() {
    const select = this.#part("camera-choice");
    if (select.options.length > 0) return;
    for (const { text, facing, device } of await this.camera.choices()) {
      const option = element("option", {}, text);
      if (facing) option.dataset.facing = facing;
      if (device) option.dataset.device = device;
      select.append(option);
    }
  }

  #fire(kind) {
    this.dispatchEvent(new Event(kind));
  }
}
