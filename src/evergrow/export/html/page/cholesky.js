/**
 * Cholesky factors of symmetric matrices: computed at once, or followed row by row.
 *
 * Matrices are rows of a Float64Array, of which the upper triangle counts: A = R'R. Every loop runs
 * along rows, which are contiguous.
 */

// Rows that are eliminated together, so that the rest of the matrix is read once for all of them.
const PANEL = 32;

/** Replaces a matrix by its factor; returns whether it is positive definite. */
export function factorise(matrix, size) {
  return finish(factorisePanels(matrix, size));
}

/** Runs a generator to its end; returns its result. */
export function finish(generator) {
  for (;;) {
    const { done, value } = generator.next();
    if (done) return value;
  }
}

/** As `factorise`, but other work can be done between two panels. */
export function* factorisePanels(matrix, size) {
  for (let first = 0; first < size; first += PANEL) {
    const end = Math.min(first + PANEL, size);
    for (let k = first; k < end; k += 1) {
      subtractRows(matrix, size, k, first, k);
      const pivot = matrix[k * size + k];
      if (!(pivot > 0)) return false;
      const root = Math.sqrt(pivot);
      for (let j = k * size + k; j < (k + 1) * size; j += 1) matrix[j] /= root;
    }
    for (let i = end; i < size; i += 1) subtractRows(matrix, size, i, first, end);
    yield;
  }
  return true;
}

/** Subtracts from row `i` the products of rows `first` to `end`, from the diagonal on. */
function subtractRows(matrix, size, i, first, end) {
  const target = i * size;
  let k = first;
  // Four at a time, so that the row is read and written less often.
  for (; k + 4 <= end; k += 4) {
    const [a, b, c, d] = [k * size, (k + 1) * size, (k + 2) * size, (k + 3) * size];
    const [fa, fb, fc, fd] = [matrix[a + i], matrix[b + i], matrix[c + i], matrix[d + i]];
    for (let j = i; j < size; j += 1) {
      matrix[target + j] -= fa * matrix[a + j] + fb * matrix[b + j] + fc * matrix[c + j] + fd * matrix[d + j];
    }
  }
  for (; k < end; k += 1) {
    const factor = matrix[k * size + i];
    if (factor === 0) continue;
    for (let j = i; j < size; j += 1) matrix[target + j] -= factor * matrix[k * size + j];
  }
}

/**
 * Adds `sign` times the products of a row to the matrix of a factor. Returns the solution z of R'z = row by
 * the new factor, which follows from the rotations; null if the matrix would no longer be definite.
 */
export function update(factor, size, row, sign) {
  const rest = Float64Array.from(row);
  const half = new Float64Array(size);
  let share = 1;
  for (let k = 0; k < size; k += 1) {
    const value = rest[k];
    if (value === 0) continue;
    const at = k * size;
    const diagonal = factor[at + k];
    const square = diagonal * diagonal + sign * value * value;
    if (!(square > 0)) return null;
    const root = Math.sqrt(square);
    const cosine = diagonal / root;
    const back = value / root;
    const sine = sign * back;
    half[k] = back * share;
    share *= cosine;
    factor[at + k] = root;
    for (let j = k + 1; j < size; j += 1) {
      const old = factor[at + j];
      const over = rest[j];
      factor[at + j] = cosine * old + sine * over;
      rest[j] = cosine * over - back * old;
    }
  }
  return half;
}

/**
 * Solves R'z = b in place for each right side b, so that z.z is b'A^-1 b. Four rows of the factor are
 * read at a time, once for all right sides.
 */
export function solveHalves(factor, size, rights) {
  for (let first = 0; first < size; first += 4) {
    const end = Math.min(first + 4, size);
    const [a, b, c, d] = [0, 1, 2, 3].map((i) => (first + i) * size);
    for (const right of rights) {
      for (let k = first; k < end; k += 1) {
        const value = right[k] / factor[k * size + k];
        right[k] = value;
        for (let j = k + 1; j < end; j += 1) right[j] -= value * factor[k * size + j];
      }
      if (end === size) continue;
      const [fa, fb, fc, fd] = [right[first], right[first + 1], right[first + 2], right[first + 3]];
      for (let j = end; j < size; j += 1) {
        right[j] -= fa * factor[a + j] + fb * factor[b + j] + fc * factor[c + j] + fd * factor[d + j];
      }
    }
  }
  return rights;
}

/** Solves R w = z in place for each right side z, in the same way. */
export function solveBacks(factor, size, rights) {
  for (let first = size - 1 - ((size - 1) % 4); first >= 0; first -= 4) {
    const end = Math.min(first + 4, size);
    const [a, b, c, d] = [0, 1, 2, 3].map((i) => (first + i) * size);
    for (const right of rights) {
      if (end < size) {
        let [sa, sb, sc, sd] = [0, 0, 0, 0];
        for (let j = end; j < size; j += 1) {
          const value = right[j];
          sa += factor[a + j] * value;
          sb += factor[b + j] * value;
          sc += factor[c + j] * value;
          sd += factor[d + j] * value;
        }
        right[first] -= sa;
        right[first + 1] -= sb;
        right[first + 2] -= sc;
        right[first + 3] -= sd;
      }
      for (let k = end - 1; k >= first; k -= 1) {
        let value = right[k];
        for (let j = k + 1; j < end; j += 1) value -= factor[k * size + j] * right[j];
        right[k] = value / factor[k * size + k];
      }
    }
  }
  return rights;
}

/** Solves A w = b in place for each right side b. */
export function solveAll(factor, size, rights) {
  return solveBacks(factor, size, solveHalves(factor, size, rights));
}

/** The inverse of a small positive definite matrix, as rows; null if it is not one. */
export function inverse(rows) {
  const size = rows.length;
  const factor = new Float64Array(size * size);
  for (let i = 0; i < size; i += 1) factor.set(rows[i], i * size);
  if (!factorise(factor, size)) return null;
  const units = rows.map((_, i) => {
    const unit = new Float64Array(size);
    unit[i] = 1;
    return unit;
  });
  const columns = solveAll(factor, size, units);
  // Rounding must not make it asymmetric.
  return columns.map((column, i) => column.map((value, j) => (value + columns[j][i]) / 2));
}

/** Adds the weighted products of rows to the upper triangle; it is read once for four of them. */
export function addProducts(matrix, size, rows, weights) {
  const nothing = new Float64Array(size);
  for (let first = 0; first < rows.length; first += 4) {
    const [a, b, c, d] = [0, 1, 2, 3].map((i) => rows[first + i] ?? nothing);
    const [wa, wb, wc, wd] = [0, 1, 2, 3].map((i) => weights[first + i] ?? 0);
    for (let i = 0; i < size; i += 1) {
      const at = i * size;
      const [fa, fb, fc, fd] = [wa * a[i], wb * b[i], wc * c[i], wd * d[i]];
      for (let j = i; j < size; j += 1) matrix[at + j] += fa * a[j] + fb * b[j] + fc * c[j] + fd * d[j];
    }
  }
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

/** Adds `factor` times a vector to another one. */
export function addTimes(target, factor, vector) {
  for (let i = 0; i < target.length; i += 1) target[i] += factor * vector[i];
}
