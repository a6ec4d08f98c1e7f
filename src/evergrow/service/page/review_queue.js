/** What someone should look at, least certain first. */

import * as api from "./api.js";
import { knowledge } from "./knowledge.js";
import { tray } from "./tray.js";
import { isolated, percent } from "./dom.js";

const MOST_CHOICES = 9;

/** Fires "change". */
class ReviewQueue extends EventTarget {
  #doubts = [];
  // Decided or skipped; what is undone is asked again.
  #done = new Set();
  #skipped = 0;
  #seen = null;

  constructor() {
    super();
    tray.addEventListener("change", () => this.#changed());
  }

  get items() {
    const unnamed = tray.pictures.filter((picture) => picture.problem === null).map(unnamedItem);
    return [...unnamed, ...this.#doubts]
      .filter((item) => !this.#done.has(item.key))
      .sort((one, other) => one.certainty - other.certainty);
  }

  async load() {
    if (knowledge.status === null || this.#seen === knowledge.moment) return;
    const { moment } = knowledge;
    try {
      const { items } = await api.review();
      this.#doubts = items.map((item) => KINDS[item.reason](item));
      this.#seen = moment;
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

  /** How many were skipped since the last look. */
  get skipped() {
    return this.#skipped;
  }

  again(key) {
    if (this.#done.delete(key)) this.#changed();
  }

  /** Skipped ones come back for another look. */
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

function unnamedItem(picture) {
  const { answer } = picture;
  const choices = (answer?.top ?? []).slice(0, MOST_CHOICES).map(({ name, probability }) => ({
    verb: "",
    name,
    share: probability,
    names: { label: name, fine: name === answer.label ? answer.fine : null },
  }));
  const known = answer?.known ?? false;
  return {
    key: `picture ${picture.id}`,
    picture,
    question: "What is this?",
    hint: known || choices.length === 0 ? "" : "It looks like nothing taught so far.",
    choices,
    accept: "Teach as ",
    // Nobody should accept a name by Enter that the model itself does not believe in.
    acceptable: known,
    newName: (name) => ({ label: name, fine: null }),
    newNameLabel: "Another class, known or new",
    otherNames: classNames,
    certainty: known ? answer.probability : (answer?.probability ?? 0) - 1,
  };
}

function classNames() {
  return knowledge.classes.map((entry) => entry.name);
}

const KINDS = { guess: guessItem, doubt: doubtItem };

function guessItem({ example, suggestion, probability }) {
  const kinds = knowledge.named(example.label)?.fine.map((kind) => kind.name) ?? [];
  const others = kinds.filter((name) => name !== suggestion);
  const choices = [suggestion, ...others].slice(0, MOST_CHOICES).map((name) => {
    return { verb: "", name, share: name === suggestion ? probability : null, names: { fine: name } };
  });
  return {
    key: `example ${example.id}`,
    example,
    question: `Which kind of ${isolated(example.label)} is this?`,
    hint: `Guessed: ${isolated(suggestion)}, ${percent(probability)}.`,
    choices,
    accept: "Yes, it is ",
    acceptable: true,
    newName: (name) => ({ fine: name }),
    newNameLabel: "Another finer name",
    otherNames: () => others,
    certainty: probability,
  };
}

function doubtItem({ example, suggestion, probability }) {
  return {
    key: `example ${example.id}`,
    example,
    question: `Is this ${isolated(example.label)}?`,
    hint:
      `It was taught as ${isolated(example.label)}, ` +
      `but looks like ${isolated(suggestion)} (${percent(probability)}).`,
    choices: [
      // What people taught stands first: Enter must not turn it into what the model would rather have.
      { verb: "Keep ", name: example.label, share: null, names: { label: example.label } },
      { verb: "Move to ", name: suggestion, share: probability, names: { label: suggestion } },
    ],
    accept: "Keep ",
    acceptable: true,
    newName: (name) => ({ label: name }),
    newNameLabel: "Another class, known or new",
    otherNames: classNames,
    certainty: 1 - probability,
  };
}

export const reviewQueue = new ReviewQueue();
