/**
 * Five scores of how well an example fits a class: the cosine to the nearest class mean, the best ridge
 * score, the lowest relative and the lowest plain Mahalanobis distance, and the length of the example.
 *
 * The mathematics is that of evergrow.estimators.novelty, in the same words: `scores` are ridge scores,
 * `metric` is the matrix K of the residuals, `leverage` is x' A^-1 x.
 */

import { dot, inverse, solveBacks, solveHalves } from "./cholesky.js";

// Residuals below this share of the class weights are rounding errors.
const ROUNDING = 1e-11;
// Squares of larger scores would overflow.
const LARGEST = 1e100;
// With more classes the matrix K would take longer than everything else.
const MOST_CLASSES = 500;
// The power of the class weight by which scores are recoded.
const RECODING = 0.5;

/** Class means as directions, seen from half way between zero and the mean of all class means. */
export class NearestMeans {
  #origin;
  #directions;
  #sums;

  constructor(sums) {
    this.#sums = sums;
    const means = sums.known.map((k) => sums.mean(k));
    const size = sums.nFeatures - 1;
    this.#origin = new Float64Array(size);
    for (const mean of means) for (let i = 0; i < size; i += 1) this.#origin[i] += mean[i] / (2 * means.length);
    this.#directions = sums.classes.map(({ n }, k) => (n > 0 ? this.#direction(sums.mean(k)) : null));
  }

  #direction(row) {
    const shifted = this.#origin.map((value, i) => row[i] - value);
    const length = Math.sqrt(dot(shifted, shifted));
    return length > 0 ? shifted.map((value) => value / length) : shifted;
  }

  /** The cosine of an example to each class mean; minus infinity without examples. */
  cosines(row) {
    const mine = this.#direction(row);
    return this.#directions.map((direction) => (direction === null ? -Infinity : dot(mine, direction)));
  }

  /** The same for a learnt example: the mean of its class is that of the others. */
  leftOut({ row, code, weight }) {
    const cosines = this.cosines(row);
    const { sum, weight: total } = this.#sums.classes[code];
    const left = total - weight;
    const others = sum.map((value, i) => (value - weight * row[i]) / (left > 0 ? left : 1));
    cosines[code] = dot(this.#direction(row), this.#direction(others));
    return cosines;
  }
}

/** Ridge scores and Mahalanobis distances. */
export class LinearScores {
  #sums;
  #factor;
  #weights;
  #metric;
  #shortfall;
  #constant;
  #classWeights;

  /** The scores by the weights of a ridge regression; null if they cannot be computed. */
  static of(sums, ridge) {
    if (sums.known.length < 2 || sums.classes.length > MOST_CLASSES) return null;
    const made = new LinearScores();
    return made.#solve(sums, ridge) ? made : null;
  }

  #solve(sums, ridge) {
    const size = sums.nFeatures;
    this.#sums = sums;
    this.#factor = ridge.factor;
    this.#classWeights = sums.classes.map(({ weight }) => weight);
    const shortfall = new Float64Array(size);
    for (const weights of ridge.weights) for (let i = 0; i < size; i += 1) shortfall[i] -= weights[i];
    shortfall[size - 1] += 1;
    this.#shortfall = shortfall;
    // The weights without a penalty of the constant: scores of an example then add up to 1.
    this.#weights = ridge.weights.map((weights) => {
      const factor = weights[size - 1] / (1 - shortfall[size - 1]);
      return weights.map((value, i) => value + factor * shortfall[i]);
    });
    const residual = this.#residual();
    if (residual === null) return false;
    this.#metric = inverse(residual);
    const unit = new Float64Array(size);
    unit[size - 1] = 1 / this.#factor[size * size - 1];
    [this.#constant] = solveBacks(this.#factor, size, [unit]);
    return this.#metric !== null;
  }

  #residual() {
    const { classes, known, weight } = this.#sums;
    const rows = classes.map(({ n, sum, weight: own }, k) => {
      const row = Float64Array.from(this.#weights, (weights) => -dot(sum, weights));
      row[k] += n > 0 ? own : 1;
      return row;
    });
    const usable = classes.every(({ n, weight: own }, k) => rows[k][k] > ROUNDING * (n > 0 ? own : 1));
    if (!usable) return null;
    // Residuals add up to 0, so the matrix is singular in that direction; its value there has no effect.
    const extra = weight / known.length ** 2;
    for (const i of known) for (const j of known) rows[i][j] += extra;
    return rows.map((row, i) => row.map((value, j) => (value + rows[j][i]) / 2));
  }

  /** The best three scores of an example: ridge, relative distance, distance. */
  best(row) {
    const scores = this.#weights.map((weights) => Math.min(LARGEST, Math.max(-LARGEST, dot(weights, row))));
    const left = this.#classWeights;
    const distances = this.#distances(scores, this.#turn(scores), left);
    const [half] = solveHalves(this.#factor, this.#sums.nFeatures, [row.slice()]);
    return finish(recode(scores, left), distances, this.#leverage(row, half), left);
  }

  /** The same for a learnt example, as if it had not been learnt. */
  leftOut({ row, code, weight }, half) {
    const leverage = this.#leverage(row, half);
    const scores = this.#weights.map((weights) => dot(weights, row));
    const residuals = scores.map((score, k) => score - (k === code ? 1 : 0));
    const turned = this.#turn(residuals);
    const rest = positive(1 - weight * leverage);
    const gain = weight / positive(rest - weight * dot(residuals, turned));
    const changed = scores.map((score, k) => (score - (k === code ? weight * leverage : 0)) / rest);
    const left = this.#classWeights.map((own, k) => own - (k === code ? weight : 0));
    const along = dot(changed, turned);
    // The product of the new scores and the matrix, without another multiplication.
    const products = turned.map((value, k) => value / rest + this.#metric[code][k]);
    const plain = this.#distances(changed, products, left);
    const distances = plain.map((value, k) => value + gain * (along - turned[k]) ** 2);
    // Recoded like a new example: its class is not rarer for the example that is left out.
    return finish(recode(changed, this.#classWeights), distances, leverage / rest, left);
  }

  /** The same for all learnt examples of a class, as if their class had not been learnt; null on rounding. */
  foreign(examples, halves) {
    const { code } = examples[0];
    const column = this.#metric[code].map((value) => value / this.#metric[code][code]);
    const scores = examples.map(({ row }) => this.#weights.map((weights) => dot(weights, row)));
    const turned = scores.map((one) => {
      const plain = this.#turn(one);
      return plain.map((value, k) => value - plain[code] * column[k]);
    });
    const sides = examples.map(({ row }) => this.#sides(row));
    const products = halves.map((one, i) => halves.map((other, j) => dot(one, other) + sides[i][0] * sides[j][1]));
    const rest = products.map((row, i) => {
      return row.map((value, j) => (i === j ? (1 + ROUNDING) / examples[i].weight : 0) - value);
    });
    const inverted = inverse(rest.map((row) => Float64Array.from(row)));
    const core = inverse(rest.map((row, i) => Float64Array.from(row, (value, j) => value - dot(turned[i], scores[j]))));
    if (inverted === null || core === null) return null;
    const grown = inverted.map((row, i) => row.map((value) => value / examples[i].weight));
    const moved = multiply(grown, scores);
    const leverages = grown.map((row, i) => dot(row, products.map((other) => other[i])));
    const along = moved.map((one) => Float64Array.from(turned, (other) => dot(one, other)));
    const bent = multiply(core, turned);
    const left = this.#classWeights.map((own, k) => (k === code ? 0 : own));
    const turnedMoved = multiply(grown, turned);
    const bentSums = left.map((_, k) => turned.reduce((sum, row, i) => sum + row[k] * bent[i][k], 0));
    const alongCore = multiply(along, core);
    return moved.map((one, i) => {
      const square = dot(alongCore[i], along[i]);
      const distances = this.#distances(one, turnedMoved[i], left).map((value, k) => {
        const across = along[i].reduce((sum, entry, j) => sum + entry * bent[j][k], 0);
        return value + square - 2 * across + bentSums[k] - column[k] * this.#metric[code][k];
      });
      return finish(recode(one, left), distances, leverages[i], left);
    });
  }

  #turn(scores) {
    return this.#metric.map((row) => dot(row, scores));
  }

  #leverage(row, half) {
    const [left, right] = this.#sides(row);
    return dot(half, half) + left * right;
  }

  /** Two numbers: the product of those of two rows is added to their product in the factor's metric. */
  #sides(row) {
    return [dot(row, this.#shortfall) / (1 - this.#shortfall[row.length - 1]), dot(row, this.#constant)];
  }

  #distances(scores, turned, left) {
    const square = dot(scores, turned);
    const total = left.reduce((sum, weight) => sum + weight, 0);
    return turned.map((value, k) => {
      const offset = 1 / (left[k] > 0 ? left[k] : 1) - 1 / total;
      return square - 2 * value + this.#metric[k][k] - offset;
    });
  }
}

/** The best score, relative distance and distance, without classes of which nothing is left. */
function finish(recoded, distances, leverage, left) {
  const total = left.reduce((sum, weight) => sum + weight, 0);
  const there = (_, k) => left[k] > 0;
  const lowest = Math.min(...distances.filter(there));
  return [Math.max(...recoded.filter(there)), -lowest, -(lowest + leverage - 1 / total)];
}

/** Favours rare classes, by the class weights that are left; the mean factor is 1. */
function recode(scores, left) {
  const powers = left.map((weight) => (weight > 0 ? weight : 1) ** -RECODING);
  const total = left.reduce((sum, weight) => sum + weight, 0);
  const mean = left.reduce((sum, weight, k) => sum + weight * powers[k], 0) / total;
  return scores.map((score, k) => (score * powers[k]) / mean);
}

function multiply(rows, others) {
  return rows.map((row) => {
    const product = new Float64Array(others[0].length);
    row.forEach((factor, i) => {
      for (let k = 0; k < product.length; k += 1) product[k] += factor * others[i][k];
    });
    return product;
  });
}

function positive(value) {
  return Math.max(value, Number.EPSILON);
}

/** The length of an example, without its constant. */
function lengthOf(row) {
  const features = row.subarray(0, row.length - 1);
  return Math.sqrt(dot(features, features));
}

/** All five scores, from sums over examples. */
export class SummedScores {
  #means;
  #linear;
  #sums;
  #ridge;

  /** @param {Ridge|null} ridge the regression of coded labels; null if the cosine is the only score */
  constructor(sums, ridge) {
    this.#sums = sums;
    this.#ridge = ridge;
    this.#means = new NearestMeans(sums);
    this.#linear = ridge === null ? null : LinearScores.of(sums, ridge);
  }

  get isLinear() {
    return this.#linear !== null;
  }

  /** The nearest class, the cosine to it, and the other scores. */
  best(row) {
    return bestOf(this.#means.cosines(row), this.#linear === null ? [] : [...this.#linear.best(row), lengthOf(row)]);
  }

  /** The same for learnt examples, as if each had not been learnt; `halves` are theirs. */
  leftOut(example, half) {
    const others = this.#linear === null ? [] : [...this.#linear.leftOut(example, half), lengthOf(example.row)];
    return bestOf(this.#means.leftOut(example), others);
  }

  /** R'^-1 times examples, which other scores need; null if the cosine is the only score. */
  halves(examples) {
    if (this.#linear === null) return examples.map(() => null);
    return solveHalves(this.#ridge.factor, this.#sums.nFeatures, examples.map(({ row }) => row.slice()));
  }

  /** The scores of the examples of a class, all five as an array, as if their class were unknown. */
  foreign(examples, halves) {
    const found = this.#linear.foreign(examples, halves);
    if (found === null) return null;
    return examples.map(({ row, code }, i) => {
      const cosines = this.#means.cosines(row);
      cosines[code] = -Infinity;
      return [bestOf(cosines, []).score, ...found[i], lengthOf(row)];
    });
  }
}

function bestOf(scores, others) {
  const score = Math.max(...scores);
  return { column: scores.indexOf(score), score, others };
}
