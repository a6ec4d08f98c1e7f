/** The prediction as bars. Every bar is a button that teaches the picture as that class. */

import { button, element, fill, listen, named } from "./dom.js";
import { predictionParts } from "./prediction_text.js";
import { isolated, nameMark, percent } from "./text.js";

const MAX_BARS = 5;

export class AnswerPanel {
  #root;
  #teach;
  #other;
  #rows = [];
  #words = element("p", { class: "verdict" });
  #finer = element("p", { class: "muted finer" });
  #if = element("p", { class: "muted small" }, "If it is one of these:");
  #bars = element("ul", { class: "bars", "aria-label": "Classes that fit best" });
  #right = button("", () => this.#accept(), { class: "primary" });
  #wrong = button("Something else…", () => this.#other(), {});
  #actions = element("div", { class: "row" }, this.#right, this.#wrong);
  #answer = null;
  #chosen = false;

  /**
   * @param {HTMLElement} root
   * @param {(label: string, fine: string|null) => void} teach
   * @param {() => void} other asks for a name that is not among the bars
   */
  constructor(root, teach, other) {
    this.#root = root;
    this.#teach = teach;
    this.#other = other;
    root.append(this.#words, this.#finer, this.#if, this.#bars, this.#actions);
    const hold = () => this.#hold(true);
    const release = () => this.#hold(false);
    // Bars that move while the user reaches for one would teach the wrong name.
    listen(this.#bars, { pointerenter: hold, pointerdown: hold, pointermove: hold, focusin: hold });
    listen(this.#bars, { pointerleave: release, focusout: release });
    this.clear("");
  }

  /** Whether the user is choosing among the bars, which must not change meanwhile. */
  get held() {
    return this.#chosen;
  }

  clear(text) {
    this.#answer = null;
    fill(this.#words, text);
    this.#words.classList.add("muted");
    for (const part of [this.#finer, this.#if, this.#bars, this.#actions]) part.hidden = true;
  }

  /** @param {boolean} teaches whether the user may teach */
  show(answer, teaches) {
    this.#answer = answer;
    this.#words.classList.remove("muted");
    fill(this.#words, ...predictionParts(answer));
    this.#showFiner(answer);
    this.#if.hidden = answer.known;
    this.#bars.hidden = false;
    this.#bars.classList.toggle("doubtful", !answer.known);
    const best = answer.top.slice(0, MAX_BARS);
    best.forEach((guess, i) => this.#row(i).show(guess, teaches));
    this.#rows.forEach((row, i) => {
      row.item.hidden = i >= best.length;
    });
    this.#actions.hidden = !teaches;
    this.#right.textContent = answer.known ? "Yes, that is right" : "Teach it as …";
    this.#wrong.hidden = !answer.known;
  }

  #showFiner({ known, fine, fine_top: finest }) {
    this.#finer.hidden = !known || finest.length === 0;
    if (this.#finer.hidden) return;
    const parts = finest.flatMap(({ name, probability }, i) => {
      return [i > 0 ? ", " : "", nameMark(name), ` ${percent(probability)}`];
    });
    fill(this.#finer, fine === null ? "Not sure which kind: " : "Kind: ", ...parts);
  }

  #row(i) {
    this.#rows[i] ??= new Row(this.#bars, (label) => this.#choose(label, null));
    return this.#rows[i];
  }

  #accept() {
    const { known, label, fine } = this.#answer;
    if (known) this.#choose(label, fine);
    else this.#other();
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
    this.#button = button(this.#name, () => choose(this.#label), { class: "bar" });
    this.#button.append(element("span", { class: "track" }, this.#full), this.#share);
    this.item = element("li", {}, this.#button);
    list.append(this.item);
  }

  show({ name, probability }, teaches) {
    this.#label = name;
    this.#name.textContent = name;
    this.#share.textContent = percent(probability);
    this.#full.style.inlineSize = `${100 * probability}%`;
    this.#button.disabled = !teaches;
    const action = teaches ? `. Teach this picture as ${isolated(name)}` : "";
    this.#button.setAttribute("aria-label", `${isolated(name)}, ${percent(probability)}${action}`);
    this.#button.title = teaches ? `Teach this picture as ${isolated(name)}` : "";
  }
}
