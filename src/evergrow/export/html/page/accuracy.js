/** How often a class is recognised, and whether it has enough examples: as evergrow.workspace measures it. */

// Two-sided 95 % quantile of the normal distribution.
const Z = 1.959964;
// A class has enough examples if its accuracy is certainly this high.
const ENOUGH = 0.75;
const MIN_EXAMPLES = 2;

/** A rate with Wilson's interval, which suits few examples too. */
export function wilson(nRight, n) {
  const rate = nRight / n;
  const square = Z ** 2 / n;
  const middle = (rate + square / 2) / (1 + square);
  const half = Math.sqrt(square * (rate * (1 - rate) + square / 4)) / (1 + square);
  return { rate, low: nRight === 0 ? 0 : middle - half, high: nRight === n ? 1 : middle + half, n };
}

/** Whether a class has enough examples: one of the signs of class_advice.js. */
export function signOf(nExamples, accuracy) {
  if (nExamples < MIN_EXAMPLES) return "new";
  if (accuracy === null) return "more";
  if (accuracy.low >= ENOUGH) return "enough";
  return accuracy.high < ENOUGH ? "confused" : "more";
}

/**
 * The accuracy of each class, and the class that it is most often mistaken for.
 *
 * @param {number[]} codes the class of each example
 * @param {Array<number|null>} predicted by a model of the others; null if there is none
 */
export function recognised(codes, predicted, nClasses) {
  return Array.from({ length: nClasses }, (_, k) => {
    const mine = predicted.filter((one, i) => codes[i] === k && one !== null);
    if (mine.length === 0) return { accuracy: null, confusedWith: null, confusedShare: null };
    const others = new Map();
    for (const one of mine) if (one !== k) others.set(one, (others.get(one) ?? 0) + 1);
    const [most, times] = [...others].reduce((best, one) => (one[1] > best[1] ? one : best), [null, 0]);
    const accuracy = wilson(mine.filter((one) => one === k).length, mine.length);
    return { accuracy, confusedWith: most, confusedShare: most === null ? null : times / mine.length };
  });
}
