/** Shows the camera, or one of the pictures in the tray. */

import { notify, notifyError } from "./notifications.js";
import { Camera, whyNoCamera } from "./camera.js";
import { byId, element, fill } from "./dom.js";
import { largeOf } from "./tray.js";

const ENDED = "The camera stopped: it was unplugged, is in use by another program, or is no longer allowed.";

/** Fires "camera" when the camera starts or stops, and "shown" when another picture is shown. */
export class Stage extends EventTarget {
  camera = new Camera(byId("video"));
  /** The picture of the tray that is shown; null for the camera or nothing. */
  picture = null;
  #choice = { facing: "environment" };
  #drawn = null;
  #starting = false;
  #paused = false;

  constructor() {
    super();
    this.camera.addEventListener("ended", () => {
      byId("camera-note").textContent = ENDED;
      notify("bad", ENDED);
      this.stopCamera();
    });
    byId("camera-start").addEventListener("click", () => this.startCamera());
    byId("camera-stop").addEventListener("click", () => this.stopCamera());
    byId("camera-back").addEventListener("click", () => this.show(null));
    byId("camera-choice").addEventListener("change", (event) => {
      const { facing, device } = event.target.selectedOptions[0].dataset;
      this.#choice = { facing, device };
      this.startCamera();
    });
    byId("camera-note").textContent = whyNoCamera() ?? "";
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
    byId("camera-note").textContent = "";
    this.#starting = true;
    this.#draw();
    try {
      // False if it was stopped, or started again, in the meantime.
      if (!(await this.camera.start(this.#choice))) return;
      await this.#offerChoices();
      if (show) this.picture = null;
    } catch (error) {
      byId("camera-note").textContent = error.message;
      notifyError(error);
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
    const viewer = byId("viewer");
    viewer.classList.remove("blink");
    // Forces a new layout, which restarts the animation.
    void viewer.offsetWidth;
    viewer.classList.add("blink");
  }

  async #draw() {
    const { picture } = this;
    byId("video").hidden = !this.usesCamera;
    byId("still").hidden = picture === null;
    // A second click would request the camera again.
    byId("camera-start").disabled = this.#starting || whyNoCamera() !== null;
    byId("viewer-empty").hidden = picture !== null || this.camera.running;
    byId("camera-stop").hidden = !this.usesCamera;
    byId("camera-back").hidden = !(this.camera.running && picture !== null);
    byId("camera-choice-row").hidden = !this.usesCamera || byId("camera-choice").options.length === 0;
    if (picture === this.#drawn) return;
    this.#drawn = picture;
    // The old picture must not be mistaken for the next one.
    fill(byId("still"));
    if (picture === null) return;
    const canvas = await largeOf(picture);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Picture ${picture.name}`);
    if (this.picture === picture) fill(byId("still"), canvas);
  }

  async #offerChoices() {
    const select = byId("camera-choice");
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
