/** What this page taught, by action: changes with one action are one step of undo. */

// Steps that are remembered; an older one can be undone, but its pictures do not come back.
const MAX_STEPS = 50;

export class TaughtSteps {
  #steps = new Map();

  /**
   * Notes that an event taught a picture, or moved it; `picture` is its entry in the tray, if it has one.
   * The step has the classes that the service names: that of a taught picture, the old one of a moved one.
   */
  add(action, event, { label, picture = null, movedFrom = null }) {
    const step = this.#steps.get(action) ?? { events: [], kinds: {}, labels: [], pictures: [] };
    this.#steps.set(action, step);
    step.events.push(event);
    const [kind, name] = movedFrom === null ? ["teach", label] : ["relabel", movedFrom];
    step.kinds[kind] = (step.kinds[kind] ?? 0) + 1;
    if (!step.labels.includes(name)) step.labels.push(name);
    // A moved picture stays in the workspace after an undo.
    if (picture !== null && movedFrom === null) step.pictures.push(picture);
    if (this.#steps.size > MAX_STEPS) this.#steps.delete(this.#steps.keys().next().value);
  }

  /** The step of an action, or null. */
  of(action) {
    return this.#steps.get(action) ?? null;
  }

  /** The step that an event belongs to, or null. */
  with(event) {
    return [...this.#steps.values()].find(({ events }) => events.includes(event)) ?? null;
  }

  /** Forgets a step that was undone. */
  remove(step) {
    for (const [action, other] of this.#steps) if (other === step) this.#steps.delete(action);
  }

  clear() {
    this.#steps.clear();
  }
}
