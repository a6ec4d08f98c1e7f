/** What the service knows, as the page last heard; fires "change". */

import * as api from "./api.js";
import { connection } from "./connection.js";
import { outbox } from "./outbox.js";
import { token } from "./token.js";

// Others teach too, and the signs of the classes are measured in the background.
const PERIOD = 4000;

class Knowledge extends EventTarget {
  status = null;
  classes = [];
  #byName = new Map();
  #running = null;
  #again = false;
  #timer = null;

  constructor() {
    super();
    connection.addEventListener("change", () => {
      if (connection.online && token.value !== null) this.refresh();
    });
  }

  /** Whether this token may teach. */
  get teaches() {
    return this.status === null || this.status.scopes.includes("teach");
  }

  get empty() {
    return this.classes.length === 0;
  }

  /** Changes with everything that answers depend on, measurements included. */
  get moment() {
    return this.status && `${this.status.event} ${this.status.assessed_event}`;
  }

  named(name) {
    return this.#byName.get(name) ?? null;
  }

  /** Asks once more after the question that is under way, never in parallel. */
  refresh() {
    if (this.#running !== null) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#ask().finally(() => {
      this.#running = null;
      if (!this.#again) return;
      this.#again = false;
      this.refresh();
    });
    return this.#running;
  }

  /** Keeps asking while the page is looked at. */
  watch() {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      if (!document.hidden && connection.online && outbox.waiting === 0) this.refresh();
    }, PERIOD);
  }

  close() {
    clearInterval(this.#timer);
    this.status = null;
    this.#learn([]);
  }

  async #ask() {
    try {
      const [status, classes] = await Promise.all([api.status(), api.classes()]);
      if (token.value === null) return;
      this.status = status;
      this.#learn(classes);
      this.dispatchEvent(new Event("change"));
    } catch (error) {
      if (!(error instanceof api.Problem) && !(error instanceof api.Unreachable)) throw error;
      // What was known stays on the page; the connection says for itself that it is gone.
    }
  }

  #learn(classes) {
    this.classes = classes;
    this.#byName = new Map(classes.map((entry) => [entry.name, entry]));
  }
}

export const knowledge = new Knowledge();
