/** The last known state of the workspace on the service; fires "change". */

import * as api from "./api.js";
import { connection } from "./connection.js";
import { outbox } from "./outbox.js";
import * as sessionCache from "./session_cache.js";
import { token } from "./token.js";

// Other users teach too, and accuracies are measured in the background.
const REFRESH_MS = 4000;

class WorkspaceState extends EventTarget {
  status = null;
  classes = [];
  #byName = new Map();
  #running = null;
  #next = null;
  #timer = null;
  #loaded = null;
  #nRunningChanges = 0;
  #nChanges = 0;

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

  /** Changes with everything that predictions and measurements depend on. */
  get version() {
    return this.status && versionOf(this.status);
  }

  /** A function that says whether the state, and the token that reads it, are still the same. */
  watch() {
    const { version } = this;
    const { value } = token;
    return () => this.status !== null && this.version === version && token.value === value;
  }

  named(name) {
    return this.#byName.get(name) ?? null;
  }

  /** Resolves when the state is current: after a running request another one is sent. */
  refresh() {
    if (this.#running === null) return this.#start();
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      return this.#start();
    });
    return this.#next;
  }

  /** Makes a change and loads its result. A state that was requested before is not shown any more. */
  async change(make) {
    this.#nRunningChanges += 1;
    try {
      return await make();
    } finally {
      this.#nRunningChanges -= 1;
      this.#nChanges += 1;
      await this.refresh();
    }
  }

  #start() {
    this.#running = this.#tryLoad().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Starts with a new token. A tab that has a cached state works without the service. */
  async open() {
    this.#loaded = null;
    try {
      await this.#load();
    } catch (error) {
      if (!(error instanceof api.Unreachable) || !this.#loadFromCache()) throw error;
      this.dispatchEvent(new Event("change"));
    }
    this.#startRefresh();
  }

  /** Refreshes regularly while the page is visible. */
  #startRefresh() {
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      if (!document.hidden && connection.online && outbox.waiting === 0) this.refresh();
    }, REFRESH_MS);
  }

  close() {
    clearInterval(this.#timer);
    this.status = null;
    this.#setClasses([]);
    sessionCache.clear();
  }

  async #tryLoad() {
    try {
      await this.#load();
    } catch (error) {
      api.expectProblem(error);
      // The page keeps showing the last state; a banner shows that the service is offline.
    }
  }

  async #load() {
    const nChanges = this.#nChanges;
    const { value: asking } = token;
    const status = await api.status();
    const version = versionOf(status);
    // Thousands of classes are not loaded again while nothing changed.
    const classes = version === this.#loaded ? this.classes : await api.classes();
    const isStale = this.#nRunningChanges > 0 || this.#nChanges !== nChanges;
    if (token.value !== asking || isStale) return;
    this.status = status;
    if (version === this.#loaded) return;
    this.#loaded = version;
    this.#setClasses(classes);
    sessionCache.save({ status, classes });
    this.dispatchEvent(new Event("change"));
  }

  #loadFromCache() {
    const cached = sessionCache.load();
    if (cached === null) return false;
    this.status = cached.status;
    this.#setClasses(cached.classes);
    return true;
  }

  #setClasses(classes) {
    this.classes = classes;
    this.#byName = new Map(classes.map((entry) => [entry.name, entry]));
  }
}

function versionOf({ event, assessed_event: assessed }) {
  return `${event} ${assessed}`;
}

export const workspace = new WorkspaceState();
