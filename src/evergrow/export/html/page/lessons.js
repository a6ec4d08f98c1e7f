/**
 * What was taught on this page: a log of changes, which can be undone, and the lessons that follow from it.
 *
 * A change is `teach` (one lesson), `relabel` or `remove` (several lessons). Changes with the same action
 * that follow each other are one step of undo.
 */

const CONFLICT = 409;

export class Lessons {
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
      this.#apply({ event, kind: "teach", action: lesson.action ?? null, lesson });
    }
    for (const change of changes) this.#apply(change);
  }

  /** All lessons, oldest first. */
  get all() {
    return [...this.#lessons.values()];
  }

  get(id) {
    return this.#lessons.get(id) ?? null;
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
    return { event: this.#newEvent(now), kind: "relabel", action, ids, from: ids.map((id) => this.get(id).label), to };
  }

  /** The change that removes lessons. */
  remove(ids, now) {
    return { event: this.#newEvent(now), kind: "remove", action: null, ids, from: ids.map((id) => this.get(id).label) };
  }

  /** Times are numbers of changes: two tabs with this page then do not use the same ones. */
  #newEvent(now) {
    return Math.max(now, this.event + 1);
  }

  /** Makes a change, and returns what the model has to do. */
  apply(change) {
    return this.#apply(change);
  }

  #apply(change) {
    this.#changes.push(change);
    if (change.kind === "teach") {
      change.id = this.#nextId;
      this.#nextId += 1;
      this.#lessons.set(change.id, { ...change.lesson, id: change.id, event: change.event, action: change.action });
      return [{ do: "add", lesson: this.get(change.id) }];
    }
    if (change.kind === "relabel") return change.ids.map((id) => this.#setLabel(id, change.to));
    change.gone = change.ids.map((id) => this.get(id));
    for (const id of change.ids) this.#lessons.delete(id);
    return change.gone.map((lesson) => ({ do: "remove", lesson }));
  }

  #setLabel(id, label) {
    const lesson = { ...this.get(id), label };
    this.#lessons.set(id, lesson);
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
    if (step.length === 0) return { event: null, kind: null, body: null, n_changes: 0, n_examples: 0, kinds: {}, labels: [], n_labels: 0 };
    const last = step.at(-1);
    const kinds = {};
    for (const { kind } of step) kinds[kind] = (kinds[kind] ?? 0) + 1;
    const labels = [...new Set(step.flatMap((change) => (change.kind === "teach" ? [change.lesson.label] : change.from)))];
    const body = last.kind === "relabel" ? { from: { label: last.from[0] }, to: { label: last.to } } : {};
    const n = step.reduce((sum, { ids }) => sum + (ids?.length ?? 1), 0);
    return { event: last.event, kind: last.kind, body, n_changes: step.length, n_examples: n, kinds, labels: labels.slice(0, 3), n_labels: labels.length };
  }

  /** Takes back the last step; returns its changes, and what the model has to do. */
  undo() {
    const step = this.#step;
    this.#changes.length -= step.length;
    return { changes: step, work: step.reverse().flatMap((change) => this.#revert(change)) };
  }

  #revert(change) {
    if (change.kind === "teach") {
      const lesson = this.get(change.id);
      this.#lessons.delete(change.id);
      return [{ do: "remove", lesson }];
    }
    if (change.kind === "relabel") return change.ids.map((id, i) => this.#setLabel(id, change.from[i]));
    for (const lesson of change.gone) this.#lessons.set(lesson.id, lesson);
    return change.gone.map((lesson) => ({ do: "add", lesson }));
  }
}

/** What to do with a picture that is already taught: null if it is new. */
export function conflictOf(known, label, move) {
  if (known === null) return null;
  if (known.label === label) return "duplicate";
  return move ? "move" : CONFLICT;
}
