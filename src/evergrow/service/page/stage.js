/** Shows what is asked about: the camera, or one of the pictures that wait for a name. */

import { failed } from "./announce.js";
import { Camera, whyNoCamera } from "./camera.js";
import { byId, element, fill } from "./dom.js";
import { copyOf } from "./tray.js";

/** Fires "camera" when the camera went on or off, and "shown" when the subject changed. */
export class Stage extends EventTarget {
  camera = new Camera(byId("video"));
  /** The picture of the tray that is shown; null for the camera or nothing. */
  picture = null;
  #choice = { facing: "environment" };
  #resting = false;

  constructor() {
    super();
    byId("camera-start").addEventListener("click", () => this.startCamera());
    byId("camera-stop").addEventListener("click", () => this.stopCamera());
    byId("camera-back").addEventListener("click", () => this.show(null));
    byId("camera-choice").addEventListener("change", (event) => {
      const { facing, device } = event.target.selectedOptions[0].dataset;
      this.#choice = { facing, device };
      this.startCamera();
    });
    const reason = whyNoCamera();
    if (reason !== null) {
      byId("camera-start").disabled = true;
      byId("camera-note").textContent = reason;
    }
    this.#draw();
  }

  get usesCamera() {
    return this.camera.running && this.picture === null;
  }

  async startCamera() {
    byId("camera-note").textContent = "";
    try {
      await this.camera.start(this.#choice);
      await this.#offerChoices();
      this.picture = null;
    } catch (error) {
      byId("camera-note").textContent = error.message;
      failed(error);
    }
    this.#draw();
    this.#tell("camera");
  }

  stopCamera() {
    this.camera.stop();
    this.#draw();
    this.#tell("camera");
  }

  /** A camera that nobody looks at is off. */
  rest() {
    this.#resting = this.camera.running;
    if (this.#resting) this.stopCamera();
  }

  wake() {
    if (this.#resting) this.startCamera();
    this.#resting = false;
  }

  show(picture) {
    if (this.picture === picture) return;
    this.picture = picture;
    this.#draw();
    this.#tell("shown");
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
    byId("viewer-empty").hidden = picture !== null || this.camera.running;
    byId("camera-stop").hidden = !this.usesCamera;
    byId("camera-back").hidden = !(this.camera.running && picture !== null);
    byId("camera-choice-row").hidden = !this.usesCamera || byId("camera-choice").options.length === 0;
    if (picture === null) return;
    const canvas = await copyOf(picture);
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
