/** Predictions in words. */

import { isolated, nameMark, percent } from "./text.js";

const CERTAIN = 0.5;

/** Whether the model knows one class only, so that a prediction means nothing. */
export function isOnlyClass({ top }) {
  return top.length === 1;
}

/** Text parts of a prediction, to be shown. */
export function predictionParts(answer) {
  const { known, label, fine, probability, top } = answer;
  if (isOnlyClass(answer)) return ["I know only ", nameMark(top[0].name), " so far."];
  if (!known) return ["I don’t know this."];
  const name = fine === null ? [nameMark(label)] : [nameMark(label), " · ", nameMark(fine)];
  return [probability >= CERTAIN ? "This is " : "Perhaps ", ...name];
}

/** A prediction in the few words that fit below a small picture. */
export function shortParts(answer) {
  if (isOnlyClass(answer)) return [];
  if (!answer.known) return ["Unknown"];
  return [nameMark(answer.label), answer.probability >= CERTAIN ? "" : "?"];
}

/** A prediction as plain text, to be read aloud. */
export function predictionText(answer) {
  const { known, label, fine, probability, top } = answer;
  if (isOnlyClass(answer)) return `I know only ${isolated(top[0].name)} so far.`;
  if (!known) return "I don’t know this.";
  const name = fine === null ? isolated(label) : `${isolated(label)}, ${isolated(fine)}`;
  return `${name}, ${percent(probability)}`;
}
