/** Predicts the camera's picture continuously: one request at a time, a few per second. */

import { expectProblem, predict } from "./api.js";
import { connection } from "./connection.js";

const PERIOD_MS = 300;
const AFTER_ERROR_MS = 2000;

export class LivePredictions {
  #camera;
  #wanted;
  #answered;
  #session = 0;

  /**
   * @param {Camera} camera
   * @param {() => boolean} wanted whether an answer would be shown now
   * @param {(image: Blob, answer: object) => void} answered
   */
  constructor(camera, wanted, answered) {
    this.#camera = camera;
    this.#wanted = wanted;
    this.#answered = answered;
  }

  start() {
    this.#session += 1;
    this.#run(this.#session);
  }

  stop() {
    this.#session += 1;
  }

  async #run(session) {
    while (session === this.#session) {
      const next = performance.now() + (await this.#once(session));
      await pause(Math.max(0, next - performance.now()));
    }
  }

  /** Sends one request; resolves to the milliseconds until the next one may start. */
  async #once(session) {
    if (document.hidden || !connection.online || !this.#camera.running || !this.#wanted()) return PERIOD_MS;
    const began = performance.now();
    try {
      const image = await this.#camera.frame();
      const [answer] = await predict([image]);
      // The user may have begun to choose a class in the meantime.
      if (session === this.#session && this.#wanted()) this.#answered(image, answer);
    } catch (error) {
      expectProblem(error);
      return AFTER_ERROR_MS;
    }
    return PERIOD_MS - (performance.now() - began);
  }
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
