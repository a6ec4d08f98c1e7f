/**
 * What was taught on this page: a log of changes, which can be undone, and the lessons that follow from it.
 *
 * A change is `teach` (one lesson), `relabel` or `remove` (several lessons, by key). Changes with the same
 * action that follow each other are one step of undo. Lessons have numbers too, which are those of this
 * visit: what the browser stores has only keys, because another tab may have stored changes as well.
 */

const CONFLICT = 409;
// Classes that a step names.
const MAX_LABELS = 3;
const NO_STEP = {
  event: null,
  kind: null,
  body: null,
  n_changes: 0,
  n_examples: 0,
  kinds: {},
  labels: [],
  n_labels: 0,
};

export class Lessons {
  // By key.
  #lessons = new Map();
  #changes = [];
  #nextId = 1;

  /**
   * @param {Array<object>} lessons those that the file contains
   * @param {Array<object>} changes those that the browser has stored, oldest first
   */
  constructor(lessons = [], changes = []) {
    for (const lesson of lessons) {
      const event = this.#changes.length + 1;
      this.apply({ event, kind: "teach", action: lesson.action ?? null, lesson });
    }
    for (const change of changes) this.apply(change);
  }

  /** All lessons, oldest first. */
  get all() {
    return [...this.#lessons.values()].sort((one, other) => one.id - other.id);
  }

  /** The lesson with a number, or null. */
  get(id) {
    return this.all.find((lesson) => lesson.id === id) ?? null;
  }

  /** The lesson with a picture, or null. */
  withPicture(sha256) {
    return this.all.find((lesson) => lesson.sha256 === sha256) ?? null;
  }

  withLabel(label) {
    return this.all.filter((lesson) => lesson.label === label);
  }

  /** Number of the last change; 0 if there was none. */
  get event() {
    return this.#changes.at(-1)?.event ?? 0;
  }

  /** The change that teaches a lesson, to be stored and then applied. */
  teach(lesson, action, now) {
    return { event: this.#newEvent(now), kind: "teach", action, lesson };
  }

  /** The change that moves lessons to another class. */
  relabel(ids, to, action, now) {
    return { event: this.#newEvent(now), kind: "relabel", action, ...this.#named(ids), to };
  }

  /** The change that removes lessons. */
  remove(ids, now) {
    return { event: this.#newEvent(now), kind: "remove", action: null, ...this.#named(ids) };
  }

  #named(ids) {
    const lessons = ids.map((id) => this.get(id));
    return { keys: lessons.map(({ key }) => key), from: lessons.map(({ label }) => label) };
  }

  /** Times are numbers of changes: two tabs with this page then do not use the same ones. */
  #newEvent(now) {
    return Math.max(now, this.event + 1);
  }

  /** Makes a change, and returns what the model has to do. */
  apply(change) {
    this.#changes.push(change);
    if (change.kind === "teach") {
      const { lesson, event, action } = change;
      return this.#put({ ...lesson, id: this.#nextId++, event, action });
    }
    // Those that another tab has undone are not there.
    const keys = change.keys.filter((key) => this.#lessons.has(key));
    if (change.kind === "relabel") return keys.map((key) => this.#setLabel(key, change.to));
    change.gone = keys.map((key) => this.#lessons.get(key));
    return keys.flatMap((key) => this.#drop(key));
  }

  #put(lesson) {
    this.#lessons.set(lesson.key, lesson);
    return [{ do: "add", lesson }];
  }

  #drop(key) {
    const lesson = this.#lessons.get(key);
    this.#lessons.delete(key);
    return lesson === undefined ? [] : [{ do: "remove", lesson }];
  }

  #setLabel(key, label) {
    const lesson = { ...this.#lessons.get(key), label };
    this.#lessons.set(key, lesson);
    return { do: "move", lesson };
  }

  /** The changes of the last step, oldest first. */
  get #step() {
    const last = this.#changes.at(-1);
    if (last === undefined) return [];
    let first = this.#changes.length - 1;
    while (last.action !== null && first > 0 && this.#changes[first - 1].action === last.action) first -= 1;
    return this.#changes.slice(first);
  }

  /** The last step as the service describes it. */
  get undoStep() {
    const step = this.#step;
    if (step.length === 0) return { ...NO_STEP };
    const last = step.at(-1);
    const kinds = {};
    for (const { kind } of step) kinds[kind] = (kinds[kind] ?? 0) + 1;
    const named = step.flatMap((change) => (change.kind === "teach" ? [change.lesson.label] : change.from));
    const labels = [...new Set(named)];
    return {
      event: last.event,
      kind: last.kind,
      body: last.kind === "relabel" ? { from: { label: last.from[0] }, to: { label: last.to } } : {},
      n_changes: step.length,
      n_examples: step.reduce((sum, { keys }) => sum + (keys?.length ?? 1), 0),
      kinds,
      labels: labels.slice(0, MAX_LABELS),
      n_labels: labels.length,
    };
  }

  /** Takes back the last step; returns its changes, and what the model has to do. */
  undo() {
    const step = this.#step;
    this.#changes.length -= step.length;
    return { changes: step, work: step.reverse().flatMap((change) => this.#revert(change)) };
  }

  #revert(change) {
    if (change.kind === "teach") return this.#drop(change.lesson.key);
    if (change.kind === "remove") return change.gone.flatMap((lesson) => this.#put(lesson));
    return change.keys.flatMap((key, i) => (this.#lessons.has(key) ? [this.#setLabel(key, change.from[i])] : []));
  }
}

/** What to do with a picture that is already taught: null if it is new. */
export function conflictOf(known, label, move) {
  if (known === null) return null;
  if (known.label === label) return "duplicate";
  return move ? "move" : CONFLICT;
}
