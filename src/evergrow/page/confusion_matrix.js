/** The confusion matrix: rows are what pictures show, columns what the model calls them. */

/** Number of tested pictures of a row; some may be in columns that are not shown. */
export function rowTotal(row, nMeasured = 0) {
  return Math.max(nMeasured, row.reduce((sum, times) => sum + times, 0));
}

/** Pairs of a class and the one it is mistaken for, most often first. `totals` are the tested pictures of each row. */
export function confusedPairs(labels, counts, totals) {
  const pairs = [];
  counts.forEach((row, i) => {
    row.forEach((times, j) => {
      if (i !== j && times > 0) pairs.push({ is: labels[i], called: labels[j], times, n: totals[i] });
    });
  });
  return pairs.sort((a, b) => b.times - a.times || b.times / b.n - a.times / a.n);
}
