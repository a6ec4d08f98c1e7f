/** Shows what is asked about: the camera, or one of the pictures that wait for a name. */

import { notify, notifyError } from "./notifications.js";
import { Camera, whyNoCamera } from "./camera.js";
import { byId, element, fill } from "./dom.js";
import { largeOf } from "./tray.js";

const ENDED = "The camera went away: it was unplugged, or is used elsewhere or no longer allowed.";

/** Fires "camera" when the camera went on or off, and "shown" when the subject changed. */
export class Stage extends EventTarget {
  camera = new Camera(byId("video"));
  /** The picture of the tray that is shown; null for the camera or nothing. */
  picture = null;
  #choice = { facing: "environment" };
  #drawn = null;
  #starting = false;
  #resting = false;

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

  /** Whether the camera is what someone chose to see, also while it is not running yet or rests. */
  get prefersCamera() {
    return this.camera.running || this.#starting || this.#resting;
  }

  /** @param {boolean} show whether to show the camera rather than a picture */
  async startCamera({ show = true } = {}) {
    byId("camera-note").textContent = "";
    this.#starting = true;
    this.#draw();
    try {
      // Otherwise it was stopped, or started in another way, and is no longer ours.
      if (!(await this.camera.start(this.#choice))) return;
      await this.#offerChoices();
      if (show) this.picture = null;
    } catch (error) {
      byId("camera-note").textContent = error.message;
      notifyError(error);
    }
    this.#starting = false;
    this.#draw();
    this.#showMessage("camera");
  }

  stopCamera() {
    this.camera.stop();
    this.#starting = false;
    this.#draw();
    this.#showMessage("camera");
  }

  /** A camera that nobody looks at is off. */
  rest() {
    this.#resting ||= this.camera.running || this.#starting;
    if (this.#resting) this.stopCamera();
  }

  wake() {
    if (this.#resting) this.startCamera({ show: false });
    this.#resting = false;
  }

  show(picture) {
    if (this.picture === picture) return;
    this.picture = picture;
    this.#draw();
    this.#showMessage("shown");
  }

  /** A short blink: a picture was taken. */
  blink() {
    const viewer = byId("viewer");
    viewer.classList.remove("blink");
    // Only a new layout starts the animation again.
    void viewer.offsetWidth;
    viewer.classList.add("blink");
  }

  async #draw() {
    const { picture } = this;
    byId("video").hidden = !this.usesCamera;
    byId("still").hidden = picture === null;
    // Until the camera runs a second click would ask for a second one.
    byId("camera-start").disabled = this.#starting || whyNoCamera() !== null;
    byId("viewer-empty").hidden = picture !== null || this.camera.running;
    byId("camera-stop").hidden = !this.usesCamera;
    byId("camera-back").hidden = !(this.camera.running && picture !== null);
    byId("camera-choice-row").hidden = !this.usesCamera || byId("camera-choice").options.length === 0;
    if (picture === this.#drawn) return;
    this.#drawn = picture;
    // What was there must not be taken for what comes.
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

  #tell(kind) {
    this.dispatchEvent(new Event(kind));
  }
}
