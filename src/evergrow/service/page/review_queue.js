/** Pictures to check, least certain first. */

import * as api from "./api.js";
import { workspace } from "./workspace.js";
import { tray } from "./tray.js";
import { doubtItem, guessItem, unnamedItem } from "./review_items.js";

/** Fires "change". */
class ReviewQueue extends EventTarget {
  #doubts = [];
  // Decided or skipped; after an undo they are shown again.
  #done = new Set();
  #skipped = 0;
  #seen = null;

  constructor() {
    super();
    tray.addEventListener("change", () => this.#changed());
  }

  get items() {
    const names = classNames();
    const unnamed = tray.pictures
      .filter((picture) => picture.problem === null)
      .map((picture) => unnamedItem(picture, names));
    return [...unnamed, ...this.#doubts]
      .filter((item) => !this.#done.has(item.key))
      .sort((one, other) => one.certainty - other.certainty);
  }

  async load() {
    if (workspace.status === null || this.#seen === workspace.version) return;
    const { version } = workspace;
    try {
      const { items } = await api.review();
      this.#doubts = items.map(reviewItem);
      this.#seen = version;
      this.#changed();
    } catch (error) {
      api.expectProblem(error);
    }
  }

  done(item) {
    this.#done.add(item.key);
    this.#changed();
  }

  skip(item) {
    this.#skipped += 1;
    this.done(item);
  }

  /** Number of skipped pictures since the last restart. */
  get skipped() {
    return this.#skipped;
  }

  again(key) {
    if (this.#done.delete(key)) this.#changed();
  }

  /** Shows skipped pictures again. */
  restart() {
    this.#done.clear();
    this.#skipped = 0;
    this.#seen = null;
    this.#changed();
    return this.load();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

function classNames() {
  return workspace.classes.map((entry) => entry.name);
}

function reviewItem(item) {
  if (item.reason === "doubt") return doubtItem(item, classNames());
  const kinds = workspace.named(item.example.label)?.fine ?? [];
  return guessItem(item, kinds.map((kind) => kind.name));
}

export const reviewQueue = new ReviewQueue();
