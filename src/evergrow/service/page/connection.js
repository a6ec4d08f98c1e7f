/** Whether the service can be reached; fires "change". */

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const PATIENCE = 5000;

class Connection extends EventTarget {
  #reached = true;
  #pause = FIRST_PAUSE;
  #timer = null;

  constructor() {
    super();
    window.addEventListener("online", () => this.#probe());
    window.addEventListener("offline", () => this.lost());
  }

  get online() {
    return this.#reached;
  }

  /** An answer came, whatever it said. */
  found() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#pause = FIRST_PAUSE;
    this.#set(true);
  }

  /** A request came to nothing: look again and again, ever less often, until something answers. */
  lost() {
    this.#set(false);
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#probe(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  async #probe() {
    clearTimeout(this.#timer);
    this.#timer = null;
    try {
      const signal = AbortSignal.timeout(PATIENCE);
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
