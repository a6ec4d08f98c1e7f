/**
 * Everything taught goes through here, one picture after the other, so that the service learns in
 * the order people taught and undo takes back what came last. What cannot be sent now is kept and
 * sent later under the same key: nothing is lost and nothing is taught twice.
 */

import { newKey, Problem, teach, Unreachable } from "./api.js";
import { connection } from "./connection.js";
import { drop, keep, kept } from "./keeping.js";

const PAUSE = 3000;

/** Fires "change", "taught" (lesson, answer), "refused" (lesson, problem), "delayed" (reason). */
class Outbox extends EventTarget {
  #workspace = null;
  #lessons = [];
  #sending = null;
  #timer = null;
  #finish = new Map();

  constructor() {
    super();
    connection.addEventListener("change", () => this.#send());
  }

  /** Begins to send, with what an earlier visit left. */
  async open(workspace) {
    this.#workspace = workspace;
    const left = await kept(workspace);
    const known = new Set(this.#lessons.map((lesson) => lesson.key));
    this.#lessons.unshift(...left.filter((lesson) => !known.has(lesson.key)));
    this.#tell("change");
    this.#send();
  }

  /** Stops sending; what is kept waits for the next token. */
  close() {
    clearTimeout(this.#timer);
    this.#workspace = null;
  }

  /** The key of the lesson, and `done`: "taught", "refused" or "withdrawn", however long it takes. */
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
    keep(lesson);
    const done = new Promise((resolve) => this.#finish.set(lesson.key, resolve));
    this.#tell("change");
    if (connection.online) this.#send();
    else this.#tell("delayed", { reason: "The service cannot be reached." });
    return { key: lesson.key, done };
  }

  /** Lessons that are not acknowledged. */
  get waiting() {
    return this.#lessons.length;
  }

  waitingFor(label) {
    return this.#lessons.filter((lesson) => lesson.label === label).length;
  }

  /** The newest lesson that can still be withdrawn, or null. */
  get last() {
    const last = this.#lessons.at(-1) ?? null;
    return last === this.#sending ? null : last;
  }

  withdrawLast() {
    const { last } = this;
    if (last !== null) this.#done(last, "withdrawn");
    return last;
  }

  async #send() {
    if (this.#sending !== null || this.#workspace === null || !connection.online) return;
    // Another workspace may have been served at this address before.
    const lesson = this.#lessons.find((one) => one.workspace === this.#workspace);
    if (lesson === undefined) return;
    clearTimeout(this.#timer);
    this.#sending = lesson;
    let pause = 0;
    try {
      const answer = await teach(lesson);
      this.#done(lesson, "taught", { answer });
    } catch (error) {
      pause = this.#failed(lesson, error);
    } finally {
      this.#sending = null;
    }
    if (pause === 0) this.#send();
    else this.#timer = setTimeout(() => this.#send(), pause);
  }

  /** What to wait for before the next try, in milliseconds. */
  #failed(lesson, error) {
    if (error instanceof Problem && !error.passing && error.status !== 401) {
      this.#done(lesson, "refused", { problem: error });
      return 0;
    }
    if (!(error instanceof Problem) && !(error instanceof Unreachable)) throw error;
    this.#tell("delayed", { reason: error.message });
    return 1000 * (error.retryAfter ?? 0) || PAUSE;
  }

  #done(lesson, outcome, told = {}) {
    this.#lessons = this.#lessons.filter((other) => other !== lesson);
    drop(lesson.key);
    this.#tell("change");
    if (outcome !== "withdrawn") this.#tell(outcome, { lesson, ...told });
    this.#finish.get(lesson.key)?.(outcome);
    this.#finish.delete(lesson.key);
  }

  #tell(kind, detail = {}) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }
}

export const outbox = new Outbox();
