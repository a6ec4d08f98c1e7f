/** Predictions in words. */

import { isolated, nameMark, percent } from "./text.js";

const CERTAIN = 0.5;

/** Text parts of a prediction, to be shown. */
export function predictionParts({ known, label, fine, probability }) {
  if (!known) return ["I don’t know this."];
  const name = fine === null ? [nameMark(label)] : [nameMark(label), " · ", nameMark(fine)];
  return [probability >= CERTAIN ? "This is " : "Perhaps ", ...name];
}

/** A prediction as plain text, to be read aloud. */
export function predictionText({ known, label, fine, probability }) {
  if (!known) return "I don’t know this.";
  const name = fine === null ? isolated(label) : `${isolated(label)}, ${isolated(fine)}`;
  return `${name}, ${percent(probability)}`;
}
