/** From weights times features to scores that are compared between classes, and to probabilities. */

import { dot } from "./cholesky.js";
import { countOf } from "./ridge.js";

// Squared lengths of class means below this are rounding errors.
const SMALLEST = 1e-12;

/** What the constant feature adds to every product of means: `total` is how often all means count. */
export function meanProduct(total, ridge) {
  return 1 / (total + ridge.interceptPenalty);
}

/** The factor that turns a product with a class mean of this squared length into a cosine. */
export function cosineFactor(square) {
  return 1 / Math.sqrt(square > SMALLEST ? square : 1);
}

/** Factors of the recoding by class weights, with a mean of 1; 0 for classes without examples. */
export function recodingFactors(weights, recoding) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const factors = weights.map((weight) => (weight > 0 ? (total / weight) ** recoding : 0));
  const mean = factors.reduce((sum, factor, k) => sum + (factor * weights[k]) / total, 0);
  return factors.map((factor) => factor / mean);
}

/** Offset and factor of the score of each class. */
export class ClassScale {
  offsets;
  factors;

  /** @param {{recoding: number, scoring: "cosine"|"regression"}} settings */
  constructor(sums, ridge, { recoding, scoring }) {
    const { classes } = sums;
    const recoded = recodingFactors(classes.map(({ weight }) => weight), recoding);
    if (scoring === "regression") {
      this.offsets = recoded.map(() => 0);
      this.factors = recoded;
      return;
    }
    const counts = classes.map((entry) => countOf(entry, ridge.byMeans));
    const origin = meanProduct(counts.reduce((sum, count) => sum + count, 0), ridge);
    this.offsets = counts.map((count) => count * origin);
    this.factors = classes.map(({ weight }, k) => {
      if (counts[k] === 0) return 0;
      const own = dot(ridge.weights[k], ridge.rightSide(k));
      return recoded[k] * Math.sqrt(weight) * (1 / counts[k]) * cosineFactor(own / counts[k] ** 2 - origin);
    });
  }

  /** The scores of an example; minus infinity for classes without examples. */
  scores(weights, row) {
    return weights.map((one, k) =>
      this.factors[k] === 0 ? -Infinity : (dot(one, row) - this.offsets[k]) * this.factors[k],
    );
  }
}

/** Probabilities from scores. */
export function softmax(scores, temperature) {
  const best = Math.max(...scores);
  const powers = scores.map((score) => Math.exp((score - best) / temperature));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}
