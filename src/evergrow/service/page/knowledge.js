/** What the service knows, as the page last heard; fires "change". */

import * as api from "./api.js";
import { connection } from "./connection.js";
import { outbox } from "./outbox.js";
import * as recollection from "./recollection.js";
import { token } from "./token.js";

// Others teach too, and the signs of the classes are measured in the background.
const PERIOD = 4000;

class Knowledge extends EventTarget {
  status = null;
  classes = [];
  #byName = new Map();
  #running = null;
  #next = null;
  #timer = null;
  #heard = null;

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
    return this.status && momentOf(this.status);
  }

  named(name) {
    return this.#byName.get(name) ?? null;
  }

  /** Resolves when what is true now is known: a question under way is waited for and asked anew. */
  refresh() {
    if (this.#running === null) return this.#start();
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      return this.#start();
    });
    return this.#next;
  }

  #start() {
    this.#running = this.#ask().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Begins with a token. A tab that knew something may go on without the service. */
  async open() {
    this.#heard = null;
    try {
      await this.#hear();
    } catch (error) {
      if (!(error instanceof api.Unreachable) || !this.#recall()) throw error;
      this.dispatchEvent(new Event("change"));
    }
    this.#watch();
  }

  /** Keeps asking while the page is looked at. */
  #watch() {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      if (!document.hidden && connection.online && outbox.waiting === 0) this.refresh();
    }, PERIOD);
  }

  close() {
    clearInterval(this.#timer);
    this.status = null;
    this.#learn([]);
    recollection.forget();
  }

  async #ask() {
    try {
      await this.#hear();
    } catch (error) {
      api.expectProblem(error);
      // What was known stays on the page; the connection says for itself that it is gone.
    }
  }

  async #hear() {
    const status = await api.status();
    const moment = momentOf(status);
    // Thousands of classes are not asked for again while nothing changed.
    const classes = moment === this.#heard ? this.classes : await api.classes();
    if (token.value === null) return;
    this.status = status;
    if (moment === this.#heard) return;
    this.#heard = moment;
    this.#learn(classes);
    recollection.keep({ status, classes });
    this.dispatchEvent(new Event("change"));
  }

  #recall() {
    const known = recollection.recall();
    if (known === null) return false;
    this.status = known.status;
    this.#learn(known.classes);
    return true;
  }

  #learn(classes) {
    this.classes = classes;
    this.#byName = new Map(classes.map((entry) => [entry.name, entry]));
  }
}

function momentOf({ event, assessed_event: assessed }) {
  return `${event} ${assessed}`;
}

export const knowledge = new Knowledge();
