/** The prediction as bars, with buttons that teach the picture as one of the classes. */

import { button, element, fill, listen, named, words } from "./dom.js";
import { isOnlyClass, predictionParts } from "./prediction_text.js";
import { isolated, nameMark, percent } from "./text.js";

const MAX_BARS = 5;

export class AnswerPanel {
  #root;
  #teach;
  #rows = [];
  #words = element("p", { class: "verdict" });
  #kind = element("p", { class: "muted" });
  #if = element("p", { class: "muted small" }, "The nearest classes:");
  #bars = element("ul", { class: "bars", "aria-label": "Classes that fit best" });
  #right = button("", () => this.#accept(), {});
  #actions = element("div", { class: "row" }, this.#right);
  #answer = null;
  #chosen = false;

  /**
   * @param {HTMLElement} root
   * @param {((label: string, fine: string|null) => void)|null} teach null where nothing is taught
   */
  constructor(root, teach = null) {
    this.#root = root;
    this.#teach = teach;
    root.append(this.#words, this.#kind, this.#actions, this.#if, this.#bars);
    const hold = () => this.#hold(true);
    const release = () => this.#hold(false);
    // Bars that move while the user reaches for one would teach the wrong name.
    if (teach !== null) {
      listen(this.#bars, { pointerenter: hold, pointerdown: hold, pointermove: hold, focusin: hold });
      listen(this.#bars, { pointerleave: release, focusout: release });
    }
    this.clear("");
  }

  /** Whether the user is choosing among the bars, which must not change in the meantime. */
  get held() {
    return this.#chosen;
  }

  /** @param {boolean} bad whether the text is that of an error */
  clear(text, { bad = false } = {}) {
    this.#answer = null;
    fill(this.#words, text);
    this.#words.classList.toggle("muted", !bad);
    this.#words.classList.toggle("problem", bad);
    for (const part of [this.#kind, this.#if, this.#bars, this.#actions]) part.hidden = true;
  }

  /**
   * @param {object} answer
   * @param {boolean} main whether the button that accepts the answer is the main one of the view
   * @param {boolean} live whether the camera will soon bring the next answer
   */
  show(answer, { main = false, live = false } = {}) {
    const only = isOnlyClass(answer);
    this.#answer = answer;
    this.#root.classList.toggle("live", live);
    this.#words.classList.remove("muted", "problem");
    fill(this.#words, ...predictionParts(answer));
    this.#showKind(answer);
    this.#if.hidden = answer.known || only;
    this.#showBars(answer, only);
    // With one class, every prediction is that class: it says nothing about the picture.
    this.#actions.hidden = this.#teach === null || !answer.known || only;
    if (!this.#actions.hidden) fill(this.#right, words("Yes, it is ", nameMark(answer.label)));
    this.#right.classList.toggle("primary", main);
  }

  #showBars(answer, only) {
    this.#bars.hidden = only;
    this.#bars.classList.toggle("doubtful", !answer.known);
    const best = answer.top.slice(0, MAX_BARS);
    best.forEach((guess, i) => {
      const teaches = this.#teach !== null && !(answer.known && i === 0);
      this.#row(i).show(guess, { teaches, known: answer.known });
    });
    this.#rows.forEach((row, i) => {
      row.item.hidden = i >= best.length;
    });
  }

  #showKind({ known, fine, fine_top: finest }) {
    this.#kind.hidden = !known || finest.length === 0;
    if (this.#kind.hidden) return;
    const parts = finest.flatMap(({ name, probability }, i) => {
      return [i > 0 ? ", " : "", nameMark(name), ` ${percent(probability)}`];
    });
    fill(this.#kind, fine === null ? "Not sure which kind: " : "Kind: ", ...parts);
  }

  #row(i) {
    this.#rows[i] ??= new Row(this.#bars, (label) => this.#choose(label, null));
    return this.#rows[i];
  }

  #accept() {
    this.#choose(this.#answer.label, this.#answer.fine);
  }

  #choose(label, fine) {
    this.#hold(false);
    this.#teach(label, fine);
  }

  #hold(held) {
    this.#chosen = held;
    this.#root.classList.toggle("held", held);
  }
}

class Row {
  #name = named("");
  #full = element("span", { class: "full" });
  #share = element("span", { class: "share" });
  #button;
  #label = "";

  constructor(list, choose) {
    this.#button = button("It is this", () => choose(this.#label), { class: "small" });
    const track = element("span", { class: "track", "aria-hidden": "true" }, this.#full);
    const chart = element("div", { class: "bar" }, this.#name, this.#share, track);
    this.item = element("li", {}, chart, this.#button);
    list.append(this.item);
  }

  /** The share is among the known classes: it says nothing about a picture that shows none of them. */
  show({ name, probability }, { teaches, known }) {
    this.#label = name;
    this.#name.textContent = name;
    this.#share.textContent = known ? percent(probability) : "";
    this.#full.style.inlineSize = `${100 * probability}%`;
    this.#button.hidden = !teaches;
    this.#button.setAttribute("aria-label", `It is this: teach it as ${isolated(name)}`);
  }
}
