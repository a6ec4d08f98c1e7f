/** Asks about the camera's picture again and again: one question at a time, a few per second. */

import { expectProblem, predict } from "./api.js";
import { connection } from "./connection.js";

const PERIOD = 300;
const AFTER_PROBLEM = 2000;

export class LivePredictions {
  #camera;
  #wanted;
  #answered;
  #turn = 0;

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
    this.#turn += 1;
    this.#run(this.#turn);
  }

  stop() {
    this.#turn += 1;
  }

  async #run(turn) {
    while (turn === this.#turn) {
      const next = performance.now() + (await this.#once(turn));
      await pause(Math.max(0, next - performance.now()));
    }
  }

  /** How long after its beginning the next question may follow. */
  async #once(turn) {
    if (document.hidden || !connection.online || !this.#camera.running || !this.#wanted()) return PERIOD;
    const began = performance.now();
    try {
      const image = await this.#camera.frame();
      const [answer] = await predict([image]);
      // Someone may have begun to choose an answer while the question was under way.
      if (turn === this.#turn && this.#wanted()) this.#answered(image, answer);
    } catch (error) {
      expectProblem(error);
      return AFTER_PROBLEM;
    }
    return PERIOD - (performance.now() - began);
  }
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
