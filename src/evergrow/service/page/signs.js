/** "Have I taught enough?" in words. */

import { counted, element, named, percent } from "./dom.js";

// What few-shot learning needs before an accuracy says anything.
export const FIRST_PICTURES = 5;

const TITLES = {
  new: "Just begun",
  more: "More would help",
  confused: "Mixed up",
  enough: "Taught enough",
};

/** A short mark: its colour never says more than its words. */
export function badge(entry) {
  return element("span", { class: `badge ${entry.sign}` }, TITLES[entry.sign]);
}

/** How many pictures there are, and how many to show. */
export function count(entry, waiting = 0) {
  const shown = counted(entry.n_examples, "picture");
  const rest = entry.n_examples < FIRST_PICTURES ? `; show about ${FIRST_PICTURES}` : "";
  const kept = waiting > 0 ? ` (${waiting} more waiting to be sent)` : "";
  return `${shown}${rest}${kept}`;
}

/** Nodes of one or two sentences about how well a class is known. */
export function verdict(entry) {
  const nodes = [ADVICE[entry.sign](entry)];
  if (entry.confused_with !== null && entry.sign !== "new") {
    const share = entry.confused_share === null ? "" : ` (${percent(entry.confused_share)} of its pictures)`;
    nodes.push(" Often taken for ", named(entry.confused_with), `${share}.`);
  }
  return nodes;
}

const ADVICE = {
  new: () => "Show a few different views of it.",
  more: (entry) => `${recognised(entry)} A few more pictures will tell.`,
  confused: (entry) => `${recognised(entry)} Show it where it looks most like the other one.`,
  enough: recognised,
};

function recognised({ accuracy }) {
  if (accuracy === null) return "Not measured yet.";
  const { rate, low, high, n } = accuracy;
  const interval = `likely between ${percent(low)} and ${percent(high)}`;
  return `Recognised ${percent(rate)} of the time (${interval}; measured on ${counted(n, "picture")}).`;
}

/** Dots that fill up with the first pictures. */
export function dots(n) {
  const filled = Math.min(n, FIRST_PICTURES);
  const all = Array.from({ length: FIRST_PICTURES }, (_, i) =>
    element("span", { class: i < filled ? "dot filled" : "dot" }),
  );
  return element("span", { class: "dots", "aria-hidden": "true" }, ...all);
}
