/**
 * The queue of taught pictures. They are sent one at a time, so that the service learns in the
 * order of teaching and undo takes back the last one. A picture that cannot be sent now is stored
 * and sent later with the same key: nothing is lost and nothing is taught twice. Browser tabs share
 * the store and lock each example, so that each tab knows the outcome.
 */

import { expectProblem } from "./problems.js";

const RETRY_MS = 3000;
const UNAUTHORIZED = 401;

/**
 * Fires "change", "taught" (example, answer), "refused" (example, problem), "elsewhere" (example)
 * and "delayed" (reason).
 */
export class OutboxQueue extends EventTarget {
  #teach;
  #newKey;
  #connection;
  #store;
  #workspace = null;
  #examples = [];
  // The example that is being sent, and a promise of the outcome.
  #sending = null;
  #timer = null;
  #finish = new Map();
  // By key: a promise of whether the browser has stored the example.
  #storing = new Map();
  // Keys of examples that the browser is still writing.
  #writing = new Set();
  // Keys of examples that the browser could not store.
  #unstored = new Set();
  // Keys of examples that may have been learnt although no response came.
  #uncertain = new Set();

  /**
   * @param {object} parts
   * @param {(example: object) => Promise<object>} parts.teach sends one example
   * @param {() => string} parts.newKey makes an idempotency key
   * @param {EventTarget & {online: boolean}} parts.connection fires "change"
   * @param {object} parts.store put, remove, has, list and withLock, as in pending_store.js
   */
  constructor({ teach, newKey, connection, store }) {
    super();
    this.#teach = teach;
    this.#newKey = newKey;
    this.#connection = connection;
    this.#store = store;
    connection.addEventListener("change", () => this.#send());
  }

  /** Starts sending, including what an earlier visit left. */
  async open(workspace) {
    this.#workspace = workspace;
    const left = await this.#store.list(workspace);
    const known = new Set(this.#examples.map((example) => example.key));
    const more = left.filter((example) => !known.has(example.key));
    for (const { key } of more) this.#uncertain.add(key);
    this.#examples.unshift(...more);
    this.#fire("change");
    this.#send();
  }

  /** Stops sending; stored examples wait for the next token. */
  close() {
    clearTimeout(this.#timer);
    this.#workspace = null;
  }

  /**
   * Queues an example; returns its key, and `done`: a promise of the outcome.
   *
   * @param {object} example
   * @param {string} example.action examples with the same action are one step of undo
   * @param {boolean} example.move whether a picture of another class is moved to this one
   */
  add({ image, label, fine = null, action, move = false }) {
    const example = {
      key: this.#newKey(),
      workspace: this.#workspace,
      // Pictures taken within one millisecond still have an order.
      number: Math.max(Date.now(), (this.#examples.at(-1)?.number ?? 0) + 1),
      image,
      label,
      fine,
      action,
      move,
    };
    this.#examples.push(example);
    this.#writing.add(example.key);
    this.#storing.set(example.key, this.#storeExample(example));
    const done = new Promise((resolve) => this.#finish.set(example.key, resolve));
    this.#fire("change");
    if (this.#connection.online) this.#send();
    else this.#reportDelay("The service cannot be reached.", example);
    return { key: example.key, done };
  }

  /** Number of examples that are not acknowledged. */
  get waiting() {
    return this.#examples.length;
  }

  /** Number of examples that are not acknowledged and no longer being written by the browser. */
  get written() {
    return this.#examples.filter(({ key }) => !this.#writing.has(key)).length;
  }

  /** Number of examples that are lost if this tab is closed. */
  get unstored() {
    return this.#unstored.size;
  }

  waitingFor(label) {
    return this.#examples.filter((example) => example.label === label).length;
  }

  /** The examples of an action that are not acknowledged. */
  ofAction(action) {
    return this.#examples.filter((example) => example.action === action);
  }

  /** The classes of the examples that are not acknowledged. */
  get labels() {
    return [...new Set(this.#examples.map(({ label }) => label))];
  }

  /** The newest example that is not acknowledged, or null. */
  get newest() {
    return this.#examples.at(-1) ?? null;
  }

  /** Whether an example of an action is being sent. */
  isSending(action) {
    return this.#sending !== null && this.#sending.example.action === action;
  }

  /**
   * Withdraws the examples of an action that were not sent. Resolves to those that were withdrawn,
   * those that may have been learnt although no response came, and the outcome of the one that was
   * being sent, or null.
   */
  async withdraw(action) {
    const sending = this.isSending(action) ? this.#sending : null;
    const others = this.ofAction(action).filter((example) => example !== sending?.example);
    const isUncertain = ({ key }) => this.#uncertain.has(key);
    const unsent = others.filter((example) => !isUncertain(example));
    // From here on nothing else in this tab sends them.
    this.#examples = this.#examples.filter((example) => !unsent.includes(example));
    this.#fire("change");
    const withdrawn = [];
    for (const example of unsent) if (await this.#withdrawOne(example)) withdrawn.push(example);
    const arrived = (await sending?.outcome) ?? null;
    return { withdrawn, uncertain: this.ofAction(action).filter(isUncertain), arrived };
  }

  /** Resolves to whether no other tab has sent or withdrawn it. */
  async #withdrawOne(example) {
    const there = await this.#store.withLock(example.key, async () => {
      const found = await this.#isPending(example);
      await this.#store.remove(example.key);
      return found;
    });
    this.#complete(example, there ? "withdrawn" : "elsewhere");
    return there;
  }

  async #storeExample(example) {
    const stored = await this.#store.put(example);
    this.#writing.delete(example.key);
    if (!stored && this.#examples.includes(example)) this.#unstored.add(example.key);
    this.#fire("change");
    return stored;
  }

  /** Whether no other tab has sent or withdrawn an example. */
  async #isPending({ key }) {
    const stored = (await this.#storing.get(key)) ?? true;
    return !stored || this.#store.has(key);
  }

  async #send() {
    if (this.#sending !== null || this.#workspace === null || !this.#connection.online) return;
    // Another workspace may have been served at this address before.
    const example = this.#examples.find((one) => one.workspace === this.#workspace);
    if (example === undefined) return;
    clearTimeout(this.#timer);
    const attempt = this.#attempt(example);
    this.#sending = { example, outcome: attempt.then(({ outcome }) => outcome) };
    this.#fire("change");
    const { pause } = await attempt;
    if (pause === 0) this.#send();
    else this.#timer = setTimeout(() => this.#send(), pause);
  }

  /** The outcome of one attempt, and the pause before the next one in milliseconds. */
  async #attempt(example) {
    try {
      return await this.#store.withLock(example.key, async () => {
        if (!(await this.#isPending(example))) return this.#complete(example, "elsewhere");
        const answer = await this.#teach(example);
        await this.#store.remove(example.key);
        return this.#complete(example, "taught", { answer });
      });
    } catch (error) {
      return this.#handleError(example, error);
    } finally {
      this.#sending = null;
      this.#fire("change");
    }
  }

  #handleError(example, error) {
    expectProblem(error);
    if (!error.temporary && error.status !== UNAUTHORIZED) {
      this.#store.remove(example.key);
      return this.#complete(example, "refused", { problem: error });
    }
    if (error.uncertain) this.#uncertain.add(example.key);
    this.#reportDelay(error.message, example);
    return { outcome: "delayed", pause: 1000 * (error.retryAfter ?? 0) || RETRY_MS };
  }

  /** Reports a delay, once it is known whether the example is stored. */
  async #reportDelay(reason, example) {
    await this.#storing.get(example.key);
    this.#fire("delayed", { reason });
  }

  #complete(example, outcome, detail = {}) {
    const { key } = example;
    this.#examples = this.#examples.filter((other) => other !== example);
    for (const known of [this.#storing, this.#unstored, this.#uncertain]) known.delete(key);
    this.#fire("change");
    if (outcome !== "withdrawn") this.#fire(outcome, { example, ...detail });
    this.#finish.get(key)?.(outcome);
    this.#finish.delete(key);
    return { outcome: detail.answer?.duplicate ? "known" : outcome, pause: 0 };
  }

  #fire(kind, detail = {}) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}
