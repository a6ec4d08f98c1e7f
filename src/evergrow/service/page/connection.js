/** Whether the service can be reached; fires "change". */

const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 15000;
const TIMEOUT_MS = 5000;

class Connection extends EventTarget {
  #reached = true;
  #pause = FIRST_PAUSE_MS;
  #timer = null;

  constructor() {
    super();
    window.addEventListener("online", () => this.#probe());
    window.addEventListener("offline", () => this.lost());
  }

  get online() {
    return this.#reached;
  }

  /** Notes that a response came, whatever its status. */
  found() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#pause = FIRST_PAUSE_MS;
    this.#set(true);
  }

  /** Notes that a request failed, and probes with backoff until the service responds. */
  lost() {
    this.#set(false);
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#probe(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, MAX_PAUSE_MS);
  }

  async #probe() {
    clearTimeout(this.#timer);
    this.#timer = null;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const answer = await fetch(new URL("healthz", document.baseURI), { cache: "no-store", signal });
      if (answer.ok) this.found();
      else this.lost();
    } catch {
      this.lost();
    }
  }

  #set(reached) {
    if (this.#reached === reached) return;
    this.#reached = reached;
    this.dispatchEvent(new Event("change"));
  }
}

export const connection = new Connection();
