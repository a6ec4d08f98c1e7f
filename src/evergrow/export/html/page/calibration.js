/** The usual scores of each class, and how far below them an example is unknown: as evergrow.estimators.novelty. */

import { dot } from "./cholesky.js";

// With fewer examples a share such as one in ten cannot be measured.
const MIN_HELD_OUT = 20;
// With this many examples, the mean score of a class and that of all classes count the same.
const PRIOR = 30;
// What a left-out example lacks: its class has one example less than a new example will find.
const LEARNING = 1;
const FEWEST = 5;
// A score of which more than this share of the variance is between classes would reject whole classes.
const MOST_BETWEEN = 0.9;
// Added to the variance of every score where scores are weighted.
const STEADY = 0.1;
// With this many classes, weights learnt from them and equal weights count the same.
const EVEN = 3;
// Spreads below this, relative to the scores, are rounding errors; of other scores than the first, which
// follow from features in single precision, those below the second.
const ROUNDING = 1e-12;
const SINGLE_ROUNDING = 1e-6;
// Novelties that differ by less than this are equal.
const TIE = 1e-9;

export class Calibration {
  /** @param {object} values usual and spreads per class, scales, share, and the level */
  constructor({ usual, spreads, scales, share, level }) {
    Object.assign(this, { usual, spreads, scales, share, level });
  }

  /**
   * Calibrates on left-out examples.
   *
   * @param {Array<{column, score, others, weight, nOwn}>} found
   * @param {{known: number[][], unknown: number[][], nClasses: number}|null} rehearsal
   */
  static of(found, nClasses, falseAlarms, rehearsal) {
    if (found.length === 0) {
      const [usual, spreads] = [fill(nClasses, 0), fill(nClasses, 1)];
      return new Calibration({ usual, spreads, scales: [], share: 1, level: Infinity });
    }
    const weights = found.map(({ weight }) => weight);
    const scores = found.map(({ score }) => score);
    const prior = PRIOR * mean(weights);
    const pooled = average(scores, weights);
    const sums = fill(nClasses, 0);
    const totals = fill(nClasses, 0);
    found.forEach(({ column, score, weight }) => {
      sums[column] += weight * score;
      totals[column] += weight;
    });
    const usual = sums.map((sum, k) => (sum + prior * pooled) / (totals[k] + prior));
    const differences = found.map(({ column, score }) => score - usual[column]);
    const largest = Math.max(...scores.map(Math.abs));
    const shrunk = spreadsOf(found, differences, weights, nClasses);
    const spreads = shrunk.map((spread) => (spread > ROUNDING * largest ? spread : 1));
    const { share, scales } = sharesOf(found, weights, rehearsal);
    const uses = scales.some(([, factor]) => factor !== 0);
    const novelties = found.map(({ column, score, others, weight, nOwn }) => {
      // Compared with the usual score without the example, as a new example would be.
      const without = (sums[column] - weight * score + prior * pooled) / (totals[column] - weight + prior);
      const n = Math.max(nOwn, FEWEST);
      const lack = uses ? ((1 - share) * LEARNING) / (n * (n - 1)) : 0;
      return (share * (Math.max(without, usual[column]) - score)) / spreads[column] + below(others, scales) - lack;
    });
    return new Calibration({ usual, spreads, scales, share, level: levelOf(novelties, weights, falseAlarms) });
  }

  /** How far the scores of an example are below what is usual, in spreads. */
  novelty({ column, score, others }) {
    return (this.share * (this.usual[column] - score)) / this.spreads[column] + below(others, this.scales);
  }

  /** Whether an example of this novelty is unknown; one without a score is not. */
  rejects(novelty) {
    return this.level !== Infinity && novelty > this.level + TIE * Math.max(1, Math.abs(this.level));
  }

  /** The same for more classes, which get the usual score of all: until examples of them are measured. */
  withClasses(nClasses) {
    const more = fill(nClasses - this.usual.length, 0);
    const usual = [...this.usual, ...more.map(() => mean(this.usual))];
    return new Calibration({ ...this, usual, spreads: [...this.spreads, ...more.map(() => mean(this.spreads))] });
  }
}

/** The lowest novelty that at most a share of the examples exceeds. */
function levelOf(novelties, weights, falseAlarms) {
  if (novelties.length < MIN_HELD_OUT) return Infinity;
  const order = novelties.map((_, i) => i).sort((i, j) => novelties[i] - novelties[j] || i - j);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const wanted = (1 - falseAlarms) * total * (1 - 1e-12);
  let sum = 0;
  for (const i of order) {
    sum += weights[i];
    if (sum >= wanted) return novelties[i];
  }
  return novelties[order.at(-1)];
}

/** The weight of the first score, and mean and factor of each of the others. */
function sharesOf(found, weights, rehearsal) {
  if (found[0].others.length === 0) return { share: 1, scales: [] };
  const known = found.map(({ score, others }) => [score, ...others]);
  const { means, factors } = scalesOf(known, weights, found.map(({ column }) => column));
  const used = factors.map((factor) => factor > 0);
  const nUsed = used.filter(Boolean).length;
  let shares = used.map((uses) => (uses ? 1 / Math.max(1, nUsed) : 0));
  if (rehearsal !== null && nUsed > 0) {
    // Few classes tell little of other classes.
    const certainty = rehearsal.nClasses / (rehearsal.nClasses + EVEN);
    const chosen = discriminant(rehearsal, used);
    const total = chosen.reduce((sum, value) => sum + value, 0);
    if (total > 0) {
      const all = used.map((uses) => (uses ? chosen.shift() / total : 0));
      shares = shares.map((share, k) => (1 - certainty) * share + certainty * all[k]);
    }
  }
  if (!shares.some((share) => share > 0)) shares[0] = 1;
  return { share: shares[0], scales: means.map((value, k) => [value, shares[k] * factors[k]]).slice(1) };
}

/** Fisher's discriminant between known and unknown examples, without negative weights. */
function discriminant({ known, unknown }, used) {
  const pick = (rows) => rows.map((row) => row.filter((_, k) => used[k]));
  const [inside, outside] = [pick(known), pick(unknown)];
  const places = inside[0].map((_, k) => k);
  const column = (rows, k) => rows.map((row) => row[k]);
  const spreads = places.map((k) => deviation(column(inside, k)) || 1);
  const scale = (rows) => rows.map((row) => row.map((value, k) => value / spreads[k]));
  const [one, other] = [covariance(scale(inside)), covariance(scale(outside))];
  const matrix = one.map((row, i) => row.map((value, j) => (value + other[i][j]) / 2 + (i === j ? STEADY : 0)));
  const difference = places.map((k) => (mean(column(inside, k)) - mean(column(outside, k))) / spreads[k]);
  return nonNegative(matrix, difference);
}

/**
 * The non-negative x with the least x'Ax - 2 x'b, of a few variables: the best of the solutions on every
 * subset of them that are positive.
 */
function nonNegative(matrix, right) {
  const size = right.length;
  let best = fill(size, 0);
  let least = 0;
  for (let subset = 1; subset < 1 << size; subset += 1) {
    const places = right.flatMap((_, k) => (subset & (1 << k) ? [k] : []));
    const solved = solveSmall(places.map((i) => places.map((j) => matrix[i][j])), places.map((i) => right[i]));
    if (solved.some((value) => !(value > 0))) continue;
    const value = -places.reduce((sum, k, i) => sum + solved[i] * right[k], 0);
    if (value < least) {
      least = value;
      best = fill(size, 0);
      places.forEach((k, i) => {
        best[k] = solved[i];
      });
    }
  }
  return best;
}

/** Solves a small positive definite system. */
function solveSmall(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const size = right.length;
  for (let k = 0; k < size; k += 1) {
    for (let i = 0; i < size; i += 1) {
      if (i === k) continue;
      const factor = rows[i][k] / rows[k][k];
      rows[i] = rows[i].map((value, j) => value - factor * rows[k][j]);
    }
  }
  return rows.map((row, k) => row[size] / row[k]);
}

/** The mean of each score and the reciprocal of its spread; 0 leaves a score out. */
function scalesOf(known, weights, columns) {
  const nScores = known[0].length;
  const scores = Array.from({ length: nScores }, (_, k) => known.map((row) => row[k]));
  const means = scores.map((values) => average(values, weights));
  const factors = scores.map((values, k) => {
    const spread = Math.sqrt(average(values.map((value) => (value - means[k]) ** 2), weights));
    const rounding = k === 0 ? ROUNDING : SINGLE_ROUNDING;
    if (!(spread > rounding * Math.max(...values.map(Math.abs)))) return 0;
    // Of the first score the spread between classes does not count.
    if (k > 0 && betweenClasses(values, weights, columns, means[k]) > MOST_BETWEEN * spread ** 2) return 0;
    return 1 / spread;
  });
  return { means, factors };
}

function betweenClasses(values, weights, columns, middle) {
  const sums = new Map();
  columns.forEach((column, i) => {
    const [sum, total] = sums.get(column) ?? [0, 0];
    sums.set(column, [sum + weights[i] * values[i], total + weights[i]]);
  });
  const squares = columns.map((column) => {
    const [sum, total] = sums.get(column);
    return (sum / total - middle) ** 2;
  });
  return average(squares, weights);
}

/** How far scores are below their means, in spreads, added up. */
function below(others, scales) {
  let sum = 0;
  for (let k = 0; k < Math.min(others.length, scales.length); k += 1) sum += (scales[k][0] - others[k]) * scales[k][1];
  return sum;
}

/** The root mean square of the differences per class, shrunk towards that of all. */
function spreadsOf(found, differences, weights, nClasses) {
  const largest = Math.max(...differences.map(Math.abs));
  if (largest === 0) return fill(nClasses, 0);
  const squares = differences.map((value) => (value / largest) ** 2);
  const prior = PRIOR * mean(weights);
  const pooled = average(squares, weights);
  const sums = fill(nClasses, 0);
  const totals = fill(nClasses, 0);
  found.forEach(({ column }, i) => {
    sums[column] += weights[i] * squares[i];
    totals[column] += weights[i];
  });
  return sums.map((sum, k) => largest * Math.sqrt((sum + prior * pooled) / (totals[k] + prior)));
}

function covariance(rows) {
  const places = rows[0].map((_, k) => k);
  const means = places.map((k) => mean(rows.map((row) => row[k])));
  const centred = rows.map((row) => row.map((value, k) => value - means[k]));
  const columns = places.map((k) => centred.map((row) => row[k]));
  return columns.map((one) => columns.map((other) => dot(one, other) / (rows.length - 1)));
}

function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
}

function average(values, weights) {
  return dot(values, weights) / weights.reduce((sum, weight) => sum + weight, 0);
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function fill(length, value) {
  return new Array(Math.max(0, length)).fill(value);
}
