/**
 * Sums over examples, which are all that least squares needs of them: per class, and of the products
 * of features. The last feature is the constant 1. Examples can be subtracted again.
 */

import { addProducts, addTimes, dot } from "./cholesky.js";

export class Sums {
  /** Per class: the sum of the features, the number of examples and their weight. */
  classes = [];
  /** The upper triangle of the products of all features. */
  gram;
  /** Sum of the squares of all features of all examples, the constant included. */
  squares = 0;
  nFeatures;

  /** @param {number} nFeatures with the constant */
  constructor(nFeatures, nClasses) {
    this.nFeatures = nFeatures;
    this.gram = new Float64Array(nFeatures * nFeatures);
    for (let k = 0; k < nClasses; k += 1) this.addClass();
  }

  /** Appends a class without examples. */
  addClass() {
    this.classes.push({ sum: new Float64Array(this.nFeatures), n: 0, weight: 0 });
  }

  get nExamples() {
    return this.classes.reduce((total, { n }) => total + n, 0);
  }

  get weight() {
    return this.classes.reduce((total, { weight }) => total + weight, 0);
  }

  /** The columns of the classes that have examples. */
  get known() {
    return this.classes.flatMap(({ n }, k) => (n > 0 ? [k] : []));
  }

  /** @param {Float64Array} row features with the constant */
  add(row, k, sign = 1, weight = 1) {
    this.addToClass(row, k, sign, weight);
    const { gram, nFeatures } = this;
    for (let i = 0; i < nFeatures; i += 1) {
      const factor = sign * weight * row[i];
      if (factor === 0) continue;
      const at = i * nFeatures;
      for (let j = i; j < nFeatures; j += 1) gram[at + j] += factor * row[j];
    }
  }

  /** Adds many examples, each with a weight of 1 unless weights are given. */
  addAll(rows, codes, weights = rows.map(() => 1)) {
    rows.forEach((row, i) => this.addToClass(row, codes[i], 1, weights[i]));
    addProducts(this.gram, this.nFeatures, rows, weights);
  }

  addToClass(row, k, sign, weight) {
    const entry = this.classes[k];
    entry.n += sign;
    if (entry.n === 0) {
      // Nothing is left of a class without examples but rounding errors.
      entry.sum.fill(0);
      entry.weight = 0;
    } else {
      addTimes(entry.sum, sign * weight, row);
      entry.weight += sign * weight;
    }
    this.squares += sign * weight * dot(row, row);
  }

  /** The mean of a class; zero without examples. */
  mean(k) {
    const { sum, weight } = this.classes[k];
    return weight > 0 ? sum.map((value) => value / weight) : sum.slice();
  }
}
