/**
 * Ridge regression of coded labels: the equations, their factor, and the weights, which follow single
 * examples. The mathematics is that of evergrow.estimators.linear, in the same words.
 */

import { addProducts, addTimes, dot, factorisePanels, finish, solveAll, solveBacks, update } from "./cholesky.js";

// Penalty of the constant feature, at most: an intercept need not be small.
const FREE = 1e-3;
const FREE_OF_MEANS = 1e-9;
// Rows of a change below this share of the other row are rounding errors.
const ROUNDING = 1e-14;
// If rounding made a matrix indefinite, this share of its largest entry is added to the diagonal.
const REPAIR = 1e-14;

/** How often the mean of a class counts in the equations. */
export function countOf({ weight }, byMeans) {
  return byMeans ? Math.min(weight, 1) : weight;
}

export class Ridge {
  #sums;
  #factor = null;
  #weights = null;
  /** Whether each class counts as one example, its mean. */
  byMeans;
  penalty;

  /** @param {Float64Array[]|null} weights those that solve the sums as they are, if they are known */
  constructor(sums, { penalty, byMeans, weights = null }) {
    this.#sums = sums;
    this.#weights = weights;
    this.penalty = penalty;
    this.byMeans = byMeans;
  }

  get interceptPenalty() {
    return Math.min(this.penalty, this.byMeans ? FREE_OF_MEANS : FREE);
  }

  /** The Cholesky factor of the penalised matrix. */
  get factor() {
    finish(this.prepare());
    return this.#factor;
  }

  /** Computes the factor, a part at a time; the sums must not change meanwhile. */
  *prepare() {
    this.#factor ??= yield* this.#factorise();
  }

  /** The weights of each class. */
  get weights() {
    const { classes, nFeatures } = this.#sums;
    this.#weights ??= solveAll(this.factor, nFeatures, classes.map((_, k) => this.rightSide(k)));
    return this.#weights;
  }

  /** The right side of a class: its sum, or its mean as often as it counts. */
  rightSide(k) {
    const entry = this.#sums.classes[k];
    if (!this.byMeans) return entry.sum.slice();
    const count = countOf(entry, true);
    return this.#sums.mean(k).map((value) => value * count);
  }

  /** Forgets the factor and the weights: they are computed again from the sums when they are needed. */
  reset() {
    this.#factor = null;
    this.#weights = null;
  }

  /**
   * Follows an example of weight 1 that is about to be added to the sums, or subtracted. Factor and
   * weights fit the sums once it was.
   */
  follow(row, k, sign) {
    if (this.#weights === null) {
      this.#factor = null;
      return;
    }
    const { factor } = this;
    const { nFeatures } = this.#sums;
    while (this.#weights.length < this.#sums.classes.length) this.#weights.push(new Float64Array(nFeatures));
    for (const step of this.#stepsOf(row, k, sign)) {
      const half = update(factor, nFeatures, step.row, step.sign);
      if (half === null) {
        this.reset();
        return;
      }
      const [gain] = solveBacks(factor, nFeatures, [half]);
      this.#weights.forEach((weights, one) => {
        const target = one === k ? step.target : 0;
        addTimes(weights, step.sign * (target - dot(weights, step.row)), gain);
      });
    }
  }

  /** The rows by which an example changes the equations, each with the target of its class. */
  #stepsOf(row, k, sign) {
    if (!this.byMeans) return [{ row, sign, target: 1 }];
    const { sum, weight: before, n } = this.#sums.classes[k];
    const after = n + sign > 0 ? before + sign : 0;
    const [counted, counts] = [Math.min(before, 1), Math.min(after, 1)];
    if (before <= 0 || after <= 0) {
      // The first example of a class, or the last one that leaves: one row, the mean.
      const root = Math.sqrt(Math.max(counted, counts));
      const mean = after > 0 ? row : sum.map((value) => value / before);
      return [{ row: mean.map((value) => root * value), sign: after > 0 ? 1 : -1, target: root }];
    }
    const share = sign / after;
    const shift = [counts * share, counts - counted];
    const change = [share * before + counts * share ** 2, shift[0], shift[1]];
    const largest = Math.max(...eigen(...change).map(({ value }) => Math.abs(value)));
    return eigen(...change)
      .filter(({ value }) => Math.abs(value) > ROUNDING * largest)
      .map(({ value, vector: [a, b] }) => {
        const root = Math.sqrt(Math.abs(value));
        const step = row.map((entry, i) => root * (a * (entry - sum[i] / before) + (b * sum[i]) / before));
        const rowSign = value < 0 ? -1 : 1;
        return { row: step, sign: rowSign, target: (rowSign * (shift[0] * a + shift[1] * b)) / root };
      });
  }

  *#factorise() {
    const { nFeatures } = this.#sums;
    let extra = 0;
    for (;;) {
      const matrix = this.#matrix();
      for (let i = 0; i < nFeatures; i += 1) {
        matrix[i * nFeatures + i] += (i === nFeatures - 1 ? this.interceptPenalty : this.penalty) + extra;
      }
      if (yield* factorisePanels(matrix, nFeatures)) return matrix;
      const largest = this.#sums.gram.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      extra = extra > 0 ? 10 * extra : REPAIR * largest;
      if (!(extra <= 10 * nFeatures * largest)) throw new Error("the sums of the model are damaged");
    }
  }

  /** The matrix without its penalty. */
  #matrix() {
    const { gram, classes, nFeatures } = this.#sums;
    const matrix = gram.slice();
    if (!this.byMeans) return matrix;
    const { known } = this.#sums;
    const means = known.map((k) => this.#sums.mean(k));
    const counts = known.map((k) => countOf(classes[k], true));
    // The products count a mean as often as it has examples.
    addProducts(matrix, nFeatures, means, known.map((k, i) => counts[i] - classes[k].weight));
    const last = new Float64Array(nFeatures);
    means.forEach((mean, i) => addTimes(last, counts[i], mean));
    // Exact, because scores are seen from what the constant feature adds to them.
    for (let i = 0; i < nFeatures; i += 1) matrix[i * nFeatures + nFeatures - 1] = last[i];
    return matrix;
  }
}

/** Eigenvalues and unit eigenvectors of [[a, b], [b, c]], the largest value first. */
function eigen(a, b, c) {
  const half = (a - c) / 2;
  const distance = Math.hypot(half, b);
  const middle = (a + c) / 2;
  if (distance === 0) return [unit(a, 1, 0), unit(a, 0, 1)];
  // The component that is not a difference of nearly equal numbers.
  const [x, y] = half >= 0 ? [half + distance, b] : [b, distance - half];
  return [unit(middle + distance, x, y), unit(middle - distance, -y, x)];
}

function unit(value, x, y) {
  const length = Math.hypot(x, y);
  return { value, vector: [x / length, y / length] };
}
