/** Whether a class has enough pictures, in words. */

import { counted, nameMark, percent } from "./text.js";

// Before that many pictures an accuracy means little.
export const FIRST_PICTURES = 5;
// Share of known pictures reported as unknown that is too large: one in ten is meant to be.
const MANY_UNKNOWN = 0.25;

export const SIGN_TITLES = {
  new: "Just begun",
  more: "More would help",
  confused: "Mixed up",
  enough: "Taught enough",
};

/** A sentence about all classes; their accuracy is that of the classes that were measured. */
export function sumText({ n_classes: n, n_examples: pictures, accuracy, measured_false_alarms: alarms }, classes) {
  const all = `${counted(n, "class", "classes")}, ${counted(pictures, "picture")}`;
  const measured = classes.filter((entry) => entry.accuracy !== null).length;
  const part = measured < n ? ` (${measured} of ${counted(n, "class", "classes")} measured)` : "";
  const known = accuracy === null ? "" : `; ${percent(accuracy.rate)} right${part}`;
  const unknown = alarms === null ? "" : `; ${percent(alarms)} of known things are reported as unknown`;
  return `${all}${known}${unknown}.`;
}

/** How many pictures a class has, and how many it should have. */
export function countText(entry, waiting = 0) {
  const shown = counted(entry.n_examples, "picture");
  const rest = entry.n_examples < FIRST_PICTURES ? `; show about ${FIRST_PICTURES}` : "";
  const queued = waiting > 0 ? ` (${waiting} more waiting to be sent)` : "";
  return `${shown}${rest}${queued}`;
}

/**
 * Parts of one or two sentences about how well a class is recognised.
 *
 * @param {object} entry
 * @param {boolean} isOnly whether it is the only class
 */
export function advice(entry, isOnly) {
  const parts = [ADVICE[entry.sign](entry, isOnly)];
  if (entry.confused_with !== null && entry.sign !== "new") {
    const share = entry.confused_share === null ? "" : ` (${percent(entry.confused_share)} of its pictures)`;
    parts.push(" Often mistaken for ", nameMark(entry.confused_with), `${share}.`);
  }
  return parts;
}

const ADVICE = {
  new: () => "Show a few different views of it.",
  more: (entry, isOnly) => (isOnly ? ONLY_CLASS : `${accuracyText(entry)} Add a few more to be sure.`),
  confused: (entry) => `${accuracyText(entry)} Show it where it looks most like the other one.`,
  enough: (entry) => `${accuracyText(entry)}${unknownText(entry)}`,
};

const ONLY_CLASS = "Teach a second thing; then this is measured.";

/** The accuracy alone does not count pictures that are reported as unknown. */
function accuracyText({ accuracy, n_unknown: nUnknown }) {
  if (accuracy === null) return "Not measured yet.";
  const unknown = nUnknown > 0 ? `, ${nUnknown} of ${accuracy.n} reported as unknown` : "";
  return `${percent(accuracy.rate)} right${unknown}.`;
}

/** What keeps a class from being taught enough, although it is not taken for others. */
function unknownText({ accuracy, n_unknown: nUnknown }) {
  if (accuracy === null) return "";
  // An exported page never measures it.
  if (nUnknown === undefined) return "";
  if (nUnknown === null) return " How many are reported as unknown is not measured.";
  return nUnknown >= MANY_UNKNOWN * accuracy.n ? " More pictures help." : "";
}

/** How sure the measured accuracy is. */
export function intervalText({ low, high, n }) {
  return `Measured on ${counted(n, "picture")}; likely between ${percent(low)} and ${percent(high)}.`;
}
