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
  #loading = null;

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

  /** Loads what the service wants to be checked, if something changed. */
  load() {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  /** Forgets everything: what one token saw is not shown to the next. */
  clear() {
    this.#doubts = [];
    this.#done.clear();
    this.#skipped = 0;
    this.#seen = null;
    this.#changed();
  }

  async #load() {
    while (workspace.status !== null && this.#seen !== workspace.version) {
      const { version } = workspace;
      const isCurrent = workspace.watch();
      try {
        const { items } = await api.review();
        // What is older, or was meant for another token, is asked for again.
        if (!isCurrent()) continue;
        this.#doubts = items.map(reviewItem);
        this.#seen = version;
        this.#changed();
      } catch (error) {
        api.expectProblem(error);
        if (isCurrent()) return;
      }
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
