/** Calls of functions in another thread. */

/**
 * In the thread: answers calls, one after the other; returns a function that reports an event.
 *
 * @param {Object<string, Function>} functions
 */
export function answerCalls(functions) {
  let last = Promise.resolve();
  self.addEventListener("message", ({ data: { number, name, given } }) => {
    last = last.then(async () => {
      try {
        self.postMessage({ number, value: await functions[name](...given) });
      } catch (error) {
        self.postMessage({ number, problem: error.message });
      }
    });
  });
  return (event) => self.postMessage({ event });
}

/** In the page: a thread; fires the events that it reports. */
export class Thread extends EventTarget {
  #worker;
  #waiting = new Map();
  #number = 0;
  // Why the thread failed; calls are rejected from then on.
  #failure = null;

  /** @param {Array<BlobPart>} script its parts, one after the other */
  constructor(script) {
    super();
    const url = URL.createObjectURL(new Blob(script, { type: "text/javascript" }));
    this.#worker = new Worker(url);
    this.#worker.addEventListener("message", ({ data }) => {
      if (data.event !== undefined) this.dispatchEvent(new Event(data.event));
      else this.#settle(data);
    });
    this.#worker.addEventListener("error", (event) => this.#fail(event.message ?? "a thread of this page failed"));
  }

  /** Calls a function by name; `moved` are buffers that the thread takes over. */
  call(name, given = [], moved = []) {
    if (this.#failure !== null) return Promise.reject(new Error(this.#failure));
    this.#number += 1;
    const number = this.#number;
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#worker.postMessage({ number, name, given }, moved);
    });
  }

  #settle({ number, value, problem }) {
    const { resolve, reject } = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (problem === undefined) resolve(value);
    else reject(new Error(problem));
  }

  #fail(reason) {
    this.#failure = reason;
    for (const { reject } of this.#waiting.values()) reject(new Error(reason));
    this.#waiting.clear();
  }
}
