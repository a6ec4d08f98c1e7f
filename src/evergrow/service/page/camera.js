/** The camera: which one, whether it may be used, and a picture of what it sees now. */

// More than the network looks at, little enough to send several times a second.
const LONGEST_SIDE = 640;
const JPEG_QUALITY = 0.9;

const REFUSALS = {
  NotAllowedError:
    "The browser does not let this page use the camera. Allow it in the address bar and try again.",
  NotFoundError: "No camera was found. Pictures can be chosen, dropped or pasted instead.",
  NotReadableError: "Another program is using the camera. Close it there and try again.",
};

/** Why there can be no camera here, or null. */
export function whyNoCamera() {
  if (navigator.mediaDevices?.getUserMedia) return null;
  if (window.isSecureContext) return "This browser offers no camera. Choose, drop or paste pictures instead.";
  return (
    "Browsers give the camera only to pages that come over https or from the same machine. " +
    "Start the service with --certfile and --keyfile, or choose pictures instead."
  );
}

/** Fires "ended" when the camera went away by itself. */
export class Camera extends EventTarget {
  #video;
  #stream = null;
  #canvas = document.createElement("canvas");
  // Counts beginnings and ends: a camera that was asked for before the last one is not wanted now.
  #turn = 0;

  constructor(video) {
    super();
    this.#video = video;
  }

  /** Whether there is a picture to see. */
  get running() {
    return this.#stream !== null && this.#video.videoWidth > 0;
  }

  /**
   * Resolves when the first picture can be seen, or to false if it was stopped or started anew
   * meanwhile; throws an Error that says what to do.
   */
  async start(choice) {
    this.stop();
    const turn = this.#turn;
    const wanted = { width: { ideal: 1280 }, height: { ideal: 960 } };
    if (choice.device) wanted.deviceId = { exact: choice.device };
    else wanted.facingMode = { ideal: choice.facing };
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ video: wanted, audio: false });
      // Permission may come late, when nobody looks any more.
      if (turn !== this.#turn) end(stream);
      else await this.#play(stream);
    } catch (error) {
      // Stopping a camera that begins to play is no failure.
      if (turn !== this.#turn) return false;
      this.stop();
      throw new Error(REFUSALS[error.name] ?? `The camera did not start: ${error.message}`);
    }
    return turn === this.#turn;
  }

  async #play(stream) {
    this.#stream = stream;
    for (const track of stream.getTracks()) {
      track.addEventListener("ended", () => this.#gone(stream));
    }
    this.#video.srcObject = stream;
    // One's own face is expected as in a mirror; the picture that is taught is never mirrored.
    this.#video.classList.toggle("mirrored", this.#facing() === "user");
    await this.#video.play();
    // Some browsers play before they know the size of what they play.
    if (this.#video.videoWidth === 0) await either(this.#video, "resize", "emptied");
  }

  #gone(stream) {
    if (stream !== this.#stream) return;
    this.stop();
    this.dispatchEvent(new Event("ended"));
  }

  stop() {
    this.#turn += 1;
    if (this.#stream !== null) end(this.#stream);
    this.#stream = null;
    this.#video.srcObject = null;
  }

  /** What can be chosen: front and back, and every further camera by its name. */
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

  /** A JPEG of what is seen now. */
  async frame() {
    const { videoWidth, videoHeight } = this.#video;
    const scale = Math.min(1, LONGEST_SIDE / Math.max(videoWidth, videoHeight));
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
