/**
 * Everything taught goes through here, one picture after the other, so that the service learns in
 * the order people taught and undo takes back what came last. What cannot be sent now is kept and
 * sent later under the same key: nothing is lost and nothing is taught twice. Tabs share what is
 * kept, and take turns with each lesson, so that each of them knows what became of it.
 */

import { expectProblem, newKey, teach } from "./api.js";
import { connection } from "./connection.js";
import { alone, drop, isKept, keep, kept } from "./keeping.js";

const PAUSE = 3000;
const UNAUTHORIZED = 401;

/** Fires "change", "taught" (lesson, answer), "refused" (lesson, problem), "elsewhere" (lesson), "delayed" (reason). */
class Outbox extends EventTarget {
  #workspace = null;
  #lessons = [];
  // The lesson on its way, and what becomes of this try.
  #sending = null;
  #timer = null;
  #finish = new Map();
  // Whether the browser keeps a lesson, as a promise by key.
  #keeping = new Map();
  // Keys of lessons that the browser refused to keep.
  #loose = new Set();
  // Keys of lessons that may have been learnt, although no answer came.
  #tried = new Set();

  constructor() {
    super();
    connection.addEventListener("change", () => this.#send());
  }

  /** Begins to send, with what an earlier visit left. */
  async open(workspace) {
    this.#workspace = workspace;
    const left = await kept(workspace);
    const known = new Set(this.#lessons.map((lesson) => lesson.key));
    const more = left.filter((lesson) => !known.has(lesson.key));
    for (const { key } of more) this.#tried.add(key);
    this.#lessons.unshift(...more);
    this.#tell("change");
    this.#send();
  }

  /** Stops sending; what is kept waits for the next token. */
  close() {
    clearTimeout(this.#timer);
    this.#workspace = null;
  }

  /** The key of the lesson, and `done`: what became of it, however long it takes. */
  add({ image, label, fine = null }) {
    const lesson = {
      key: newKey(),
      workspace: this.#workspace,
      // Pictures taken within one millisecond still have an order.
      number: Math.max(Date.now(), (this.#lessons.at(-1)?.number ?? 0) + 1),
      image,
      label,
      fine,
    };
    this.#lessons.push(lesson);
    this.#keeping.set(lesson.key, this.#keep(lesson));
    const done = new Promise((resolve) => this.#finish.set(lesson.key, resolve));
    this.#tell("change");
    if (connection.online) this.#send();
    else this.#delayed("The service cannot be reached.", lesson);
    return { key: lesson.key, done };
  }

  /** Lessons that are not acknowledged. */
  get waiting() {
    return this.#lessons.length;
  }

  /** How many of them are lost if this tab is closed. */
  get loose() {
    return this.#loose.size;
  }

  waitingFor(label) {
    return this.#lessons.filter((lesson) => lesson.label === label).length;
  }

  /** The newest lesson that is not acknowledged, or null. */
  get last() {
    return this.#lessons.at(-1) ?? null;
  }

  /** What becomes of the newest lesson's way to the service; null if it is not on its way. */
  get arrival() {
    const newest = this.#sending !== null && this.#sending.lesson === this.last;
    return newest ? this.#sending.outcome : null;
  }

  /** Whether the newest lesson may be learnt already, although nobody knows. */
  get uncertain() {
    return this.#tried.has(this.last?.key);
  }

  /** Withdraws the newest lesson; whether it was still there to be withdrawn. */
  async withdrawLast() {
    const { last } = this;
    // From here on nothing else in this tab takes it up.
    this.#lessons = this.#lessons.filter((other) => other !== last);
    this.#tell("change");
    const there = await alone(last.key, async () => {
      const found = await this.#isThere(last);
      await drop(last.key);
      return found;
    });
    this.#done(last, there ? "withdrawn" : "elsewhere");
    return there;
  }

  async #keep(lesson) {
    const safe = await keep(lesson);
    if (!safe && this.#lessons.includes(lesson)) {
      this.#loose.add(lesson.key);
      this.#tell("change");
    }
    return safe;
  }

  /** Whether no other tab has sent or withdrawn a lesson. */
  async #isThere({ key }) {
    const safe = (await this.#keeping.get(key)) ?? true;
    return !safe || isKept(key);
  }

  async #send() {
    if (this.#sending !== null || this.#workspace === null || !connection.online) return;
    // Another workspace may have been served at this address before.
    const lesson = this.#lessons.find((one) => one.workspace === this.#workspace);
    if (lesson === undefined) return;
    clearTimeout(this.#timer);
    const tried = this.#try(lesson);
    this.#sending = { lesson, outcome: tried.then(({ outcome }) => outcome) };
    this.#tell("change");
    const { pause } = await tried;
    if (pause === 0) this.#send();
    else this.#timer = setTimeout(() => this.#send(), pause);
  }

  /** What became of one try, and what to wait for before the next, in milliseconds. */
  async #try(lesson) {
    try {
      return await alone(lesson.key, async () => {
        if (!(await this.#isThere(lesson))) return this.#done(lesson, "elsewhere");
        const answer = await teach(lesson);
        await drop(lesson.key);
        return this.#done(lesson, "taught", { answer });
      });
    } catch (error) {
      return this.#failed(lesson, error);
    } finally {
      this.#sending = null;
      this.#tell("change");
    }
  }

  #failed(lesson, error) {
    expectProblem(error);
    if (!error.passing && error.status !== UNAUTHORIZED) {
      drop(lesson.key);
      return this.#done(lesson, "refused", { problem: error });
    }
    if (error.uncertain) this.#tried.add(lesson.key);
    this.#delayed(error.message, lesson);
    return { outcome: "delayed", pause: 1000 * (error.retryAfter ?? 0) || PAUSE };
  }

  /** Says what waits, once it is known how well it is kept. */
  async #delayed(reason, lesson) {
    await this.#keeping.get(lesson.key);
    this.#tell("delayed", { reason });
  }

  #done(lesson, outcome, told = {}) {
    const { key } = lesson;
    this.#lessons = this.#lessons.filter((other) => other !== lesson);
    for (const known of [this.#keeping, this.#loose, this.#tried]) known.delete(key);
    this.#tell("change");
    if (outcome !== "withdrawn") this.#tell(outcome, { lesson, ...told });
    this.#finish.get(key)?.(outcome);
    this.#finish.delete(key);
    return { outcome: told.answer?.duplicate ? "known" : outcome, pause: 0 };
  }

  #tell(kind, detail = {}) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

export const outbox = new Outbox();
