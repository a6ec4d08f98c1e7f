/** Scores of learnt examples by all others: the closed form of evergrow.estimators.linear.ridge. */

import { dot, solveHalves } from "./cholesky.js";
import { countOf } from "./ridge.js";
import { cosineFactor, meanProduct } from "./scoring.js";

// Examples of one class whose squared distance is below this share of the usual one are left out
// together: a burst of pictures of one scene would otherwise recognise itself.
const NEARLY_EQUAL = 0.1;
const EPS = Number.EPSILON;

/**
 * The class that a model of all other examples predicts for each example; null for the only example of
 * its class.
 *
 * @param {Array<{row: Float64Array, code: number}>} examples some of those in the sums
 */
export function* predictLeftOut(sums, ridge, { recoding, scoring }, examples) {
  const { nFeatures, classes } = sums;
  const { factor } = ridge;
  const means = solveHalves(factor, nFeatures, classes.map((_, k) => sums.mean(k)));
  const products = means.map((one) => means.map((other) => dot(one, other)));
  const found = new Array(examples.length).fill(null);
  const limit = NEARLY_EQUAL * usualDistance(sums, examples);
  for (const group of groupsOf(examples, limit)) {
    // Between groups the caller may do something else.
    yield null;
    const { code } = examples[group[0]];
    const left = classes[code].n - group.length;
    if (left <= 0 || sums.known.length < 2) continue;
    const rows = solveHalves(factor, nFeatures, group.map((i) => examples[i].row.slice()));
    const scores = leftOutScores({ sums, ridge, scoring, means, products }, rows, code, left);
    const recoded = classes.map(({ n, weight }, k) => (n === 0 ? 0 : (k === code ? left : weight) ** -recoding));
    group.forEach((i, place) => {
      const shown = scores[place].map((score, k) => (recoded[k] === 0 ? -Infinity : score * recoded[k]));
      found[i] = shown.indexOf(Math.max(...shown));
    });
  }
  return found;
}

/** Scores of examples of a class that are left out together, before recoding; `left` of the class stay. */
function leftOutScores({ sums, ridge, scoring, means, products }, rows, code, left) {
  const { classes } = sums;
  const mean = means[code];
  const counts = classes.map((entry) => countOf(entry, ridge.byMeans));
  const before = counts[code];
  const after = countOf({ weight: left }, ridge.byMeans);
  const n = rows.length;
  const share = 1 / left;
  const moved = [...rows.map((row) => row.map((value, i) => value - mean[i])), mean];
  // The change of the matrix is -U C U', with the moved rows as U.
  const change = moved.map((_, i) =>
    moved.map((__, j) => {
      if (i < n && j < n) return (i === j ? 1 : 0) + (left - after) * share ** 2;
      return i === n && j === n ? before - after : after * share;
    }),
  );
  const inner = moved.map((one) => moved.map((other) => dot(one, other)));
  const along = moved.map((one, i) => (i === n ? products[code].slice() : means.map((other) => dot(one, other))));
  const kept = moved.map((_, i) => (i === n ? 1 : -share));
  moved.forEach((_, i) => {
    along[i][code] = dot(inner[i], kept);
  });
  const system = moved.map((_, i) =>
    moved.map((__, j) => (i === j ? 1 + EPS : 0) - change[i].reduce((sum, value, k) => sum + value * inner[k][j], 0)),
  );
  const gain = solveGeneral(system, change);
  const turned = gain.map((row) => classes.map((_, k) => row.reduce((sum, value, i) => sum + value * along[i][k], 0)));
  const squares = classes.map((_, k) => {
    const own = k === code ? dot(kept, inner.map((row) => dot(row, kept))) : products[k][k];
    return own + along.reduce((sum, row, i) => sum + row[k] * turned[i][k], 0);
  });
  const total = counts.reduce((sum, count) => sum + count, 0) - before + after;
  const origin = meanProduct(total, ridge);
  return rows.map((_, place) => {
    const mine = inner[place].map((value, i) => value + inner[n][i]);
    return classes.map(({ weight }, k) => {
      // The product of the example with the mean of the class, before and after the change.
      const plain = k === code ? dot(mine, kept) : along[place][k] + products[code][k];
      const product = plain + mine.reduce((sum, value, i) => sum + value * turned[i][k], 0);
      const size = k === code ? left : weight;
      if (scoring === "regression") return product * size;
      return (product - origin) * Math.sqrt(size) * cosineFactor(squares[k] - origin);
    });
  });
}

/** Solves a small system for several right sides, by elimination with pivots. */
function solveGeneral(system, rights) {
  const size = system.length;
  const rows = system.map((row, i) => [...row, ...rights[i]]);
  for (let k = 0; k < size; k += 1) {
    let pivot = k;
    for (let i = k + 1; i < size; i += 1) if (Math.abs(rows[i][k]) > Math.abs(rows[pivot][k])) pivot = i;
    [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
    const value = rows[k][k] === 0 ? EPS : rows[k][k];
    rows[k] = rows[k].map((entry) => entry / value);
    for (let i = 0; i < size; i += 1) {
      if (i === k || rows[i][k] === 0) continue;
      const factor = rows[i][k];
      rows[i] = rows[i].map((entry, j) => entry - factor * rows[k][j]);
    }
  }
  return rows.map((row) => row.slice(size));
}

/** The mean squared distance of two examples of one class. */
function usualDistance(sums, examples) {
  const means = sums.classes.map((_, k) => sums.mean(k));
  const total = examples.reduce((sum, { row, code }) => sum + squaredDistance(row, means[code]), 0);
  return (2 * total) / Math.max(1, examples.length);
}

/** The places of examples by groups of nearly equal ones, which may be groups of one. */
function groupsOf(examples, limit) {
  const parents = examples.map((_, i) => i);
  const rootOf = (i) => (parents[i] === i ? i : (parents[i] = rootOf(parents[i])));
  const ofClass = new Map();
  examples.forEach(({ row, code }, i) => {
    const earlier = ofClass.get(code) ?? [];
    for (const j of earlier) {
      if (rootOf(j) !== rootOf(i) && squaredDistance(row, examples[j].row) <= limit) parents[rootOf(i)] = rootOf(j);
    }
    ofClass.set(code, [...earlier, i]);
  });
  const groups = new Map();
  examples.forEach((_, i) => groups.set(rootOf(i), [...(groups.get(rootOf(i)) ?? []), i]));
  return groups.values();
}

function squaredDistance(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += (one[i] - other[i]) ** 2;
  return sum;
}
