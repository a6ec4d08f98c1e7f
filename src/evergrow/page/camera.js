/** The camera: choose one, start it, and take pictures. */

// More pixels than the network needs, few enough to send several times per second.
const MAX_SIDE = 640;
const JPEG_QUALITY = 0.9;

const ERRORS = {
  NotAllowedError:
    "The browser does not let this page use the camera. Allow it in the address bar and try again.",
  NotFoundError: "No camera was found. Pictures can be chosen, dropped or pasted instead.",
  NotReadableError: "Another program is using the camera. Close it there and try again.",
};

/** The reason why no camera can be used here, or null. */
export function whyNoCamera() {
  if (navigator.mediaDevices?.getUserMedia) return null;
  if (window.isSecureContext) return "This browser has no camera support. Choose, drop or paste pictures instead.";
  return (
    "Browsers give the camera only to pages that come over https or from the same machine. " +
    "Start the service with --certfile and --keyfile, or choose pictures instead."
  );
}

/** Fires "ended" when the camera stops by itself. */
export class Camera extends EventTarget {
  #video;
  #stream = null;
  #canvas = document.createElement("canvas");
  // Counts starts and stops: a camera that arrives after a later start or stop is not used.
  #nChanges = 0;

  constructor(video) {
    super();
    this.#video = video;
  }

  /** Whether the camera shows a picture. */
  get running() {
    return this.#stream !== null && this.#video.videoWidth > 0;
  }

  /**
   * Resolves when the first picture can be seen, or to false if it was stopped or started again
   * meanwhile; throws an Error whose message says what to do.
   */
  async start(choice) {
    this.stop();
    const nChanges = this.#nChanges;
    const wanted = { width: { ideal: 1280 }, height: { ideal: 960 } };
    if (choice.device) wanted.deviceId = { exact: choice.device };
    else wanted.facingMode = { ideal: choice.facing };
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: wanted, audio: false });
      // Permission may come after the camera was stopped.
      if (nChanges !== this.#nChanges) end(stream);
      else await this.#play(stream);
    } catch (error) {
      // Stopping a camera that is starting is not an error.
      if (nChanges !== this.#nChanges) return false;
      this.stop();
      throw new Error(ERRORS[error.name] ?? `The camera did not start: ${error.message}`);
    }
    return nChanges === this.#nChanges;
  }

  async #play(stream) {
    this.#stream = stream;
    for (const track of stream.getTracks()) {
      track.addEventListener("ended", () => this.#onEnded(stream));
    }
    this.#video.srcObject = stream;
    // Users expect to see themselves as in a mirror; the picture that is taught is not mirrored.
    this.#video.classList.toggle("mirrored", this.#facing() === "user");
    await this.#video.play();
    // Some browsers start playing before they know the size of the video.
    if (this.#video.videoWidth === 0) await either(this.#video, "resize", "emptied");
  }

  #onEnded(stream) {
    if (stream !== this.#stream) return;
    this.stop();
    this.dispatchEvent(new Event("ended"));
  }

  stop() {
    this.#nChanges += 1;
    if (this.#stream !== null) end(this.#stream);
    this.#stream = null;
    this.#video.srcObject = null;
  }

  /** The choices: back camera, front camera, and each device by its name. */
  async choices() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    const cameras = devices.filter((device) => device.kind === "videoinput");
    if (cameras.length < 2) return [];
    const sides = [
      { text: "Back camera", facing: "environment" },
      { text: "Front camera", facing: "user" },
    ];
    const others = cameras.map(({ label, deviceId: device }, i) => ({ text: label || `Camera ${i + 1}`, device }));
    return [...sides, ...others];
  }

  /** A JPEG of the current picture. */
  async frame() {
    const { videoWidth, videoHeight } = this.#video;
    const scale = Math.min(1, MAX_SIDE / Math.max(videoWidth, videoHeight));
    this.#canvas.width = Math.round(videoWidth * scale);
    this.#canvas.height = Math.round(videoHeight * scale);
    this.#canvas.getContext("2d").drawImage(this.#video, 0, 0, this.#canvas.width, this.#canvas.height);
    return new Promise((resolve) => this.#canvas.toBlob(resolve, "image/jpeg", JPEG_QUALITY));
  }

  #facing() {
    return this.#stream.getVideoTracks()[0]?.getSettings().facingMode;
  }
}

function end(stream) {
  for (const track of stream.getTracks()) track.stop();
}

function either(target, ...events) {
  return new Promise((resolve) => {
    for (const event of events) target.addEventListener(event, resolve, { once: true });
  });
}
