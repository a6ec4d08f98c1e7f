/** Keyboard shortcuts of the review, and the help dialog, where they can be turned off. */

import { showMessage } from "./dialogs.js";
import { element, isTyping } from "./dom.js";

const STORAGE_KEY = "evergrow-shortcuts";

const KEYS = [
  ["1 – 9", "choose one of the names (review)"],
  ["Enter", "press the large button (review)"],
  ["N", "type another name (review); Escape goes back"],
  ["S", "skip for now (review)"],
  ["U", "undo (review)"],
  ["?", "show these keys"],
  ["Ctrl + Z", "undo the last change, anywhere outside of text fields"],
];

/**
 * @param {HTMLElement} region keys count only while it or nothing has the focus
 * @param {object} actions ready and undo; hasItem, and if it has one: accept, choose, skip, name
 */
export function reviewShortcuts(region, actions) {
  const keys = {
    n: actions.name,
    s: actions.skip,
    u: actions.undo,
    enter: actions.accept,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !actions.ready()) return;
    const { target } = event;
    const here = target === document.body || region.contains(target);
    if (!here || isTyping(target) || document.querySelector("dialog[open]") || !wanted()) return;
    // Enter on a button presses that button.
    if (event.key === "Enter" && target.matches("button, a")) return;
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) : null;
    const action = number === null ? keys[event.key.toLowerCase()] : () => actions.choose(number - 1);
    // What was decided last can be undone when nothing is left to review.
    if (action === undefined || (action !== actions.undo && !actions.hasItem())) return;
    event.preventDefault();
    action();
  });
}

export function startHelp(control) {
  control.addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || isTyping(event.target) || document.querySelector("dialog[open]") || !wanted()) return;
    event.preventDefault();
    help();
  });
}

function help() {
  const rows = KEYS.map(([key, does]) => {
    return element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, does));
  });
  const box = element("input", { type: "checkbox", id: "shortcuts-on", checked: wanted() });
  box.addEventListener("change", () => want(box.checked));
  showMessage(
    "Help",
    element(
      "p",
      {},
      "Show something to the camera, or choose pictures of it. Type what it is and take about five pictures from " +
        "different sides. From the second class on the page says what it sees, and one click corrects it. " +
        "Under “Try it” nothing is kept.",
    ),
    element("dl", { class: "keys" }, ...rows),
    element("p", { class: "row keys-note" }, box, element("label", { htmlFor: "shortcuts-on" }, "Single-letter keys")),
  );
}

// Without storage the choice is kept in memory until the page is closed.
let choice = null;

function wanted() {
  try {
    choice ??= localStorage.getItem(STORAGE_KEY);
  } catch {
    // Nothing was stored.
  }
  return choice !== "off";
}

function want(on) {
  choice = on ? "on" : "off";
  try {
    localStorage.setItem(STORAGE_KEY, choice);
  } catch {
    // It is only in memory.
  }
}
