/** The confusion matrix: rows are what pictures show, columns what the model calls them. */

export function rowTotal(row) {
  return row.reduce((sum, times) => sum + times, 0);
}

/** Pairs of classes that are mixed up, most often first. */
export function confusedPairs(labels, counts) {
  const pairs = [];
  counts.forEach((row, i) => {
    const n = rowTotal(row);
    row.forEach((times, j) => {
      if (i !== j && times > 0) pairs.push({ is: labels[i], called: labels[j], times, n });
    });
  });
  return pairs.sort((a, b) => b.times - a.times || b.times / b.n - a.times / a.n);
}

/** Indices of the classes with the most mistakes, in the order of the matrix. */
export function worstClasses(counts, most) {
  return counts
    .map((row, i) => ({ i, mistakes: rowTotal(row) - row[i] }))
    .sort((a, b) => b.mistakes - a.mistakes)
    .slice(0, most)
    .map(({ i }) => i)
    .sort((a, b) => a - b);
}
