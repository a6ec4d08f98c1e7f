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

/** Solves R'z = b in place, so that z.z is b'A^-1 b. */
export function solveHalf(factor, size, right) {
  for (let k = 0; k < size; k += 1) {
    const at = k * size;
    const value = right[k] / factor[at + k];
    right[k] = value;
    if (value === 0) continue;
    for (let j = k + 1; j < size; j += 1) right[j] -= value * factor[at + j];
  }
  return right;
}

/** The same for several right sides; each row of the factor is read once for all of them. */
export function solveHalves(factor, size, rights) {
  for (let k = 0; k < size; k += 1) {
    const at = k * size;
    for (const right of rights) {
      const value = right[k] / factor[at + k];
      right[k] = value;
      if (value === 0) continue;
      for (let j = k + 1; j < size; j += 1) right[j] -= value * factor[at + j];
    }
  }
  return rights;
}

/** Solves R w = z in place. */
export function solveBack(factor, size, right) {
  for (let k = size - 1; k >= 0; k -= 1) {
    const at = k * size;
    let value = right[k];
    for (let j = k + 1; j < size; j += 1) value -= factor[at + j] * right[j];
    right[k] = value / factor[at + k];
  }
  return right;
}

/** Solves A w = b in place. */
export function solve(factor, size, right) {
  return solveBack(factor, size, solveHalf(factor, size, right));
}

/** The inverse of a small positive definite matrix, as rows; null if it is not one. */
export function inverse(rows) {
  const size = rows.length;
  const factor = new Float64Array(size * size);
  for (let i = 0; i < size; i += 1) factor.set(rows[i], i * size);
  if (!factorise(factor, size)) return null;
  const columns = rows.map((_, i) => {
    const unit = new Float64Array(size);
    unit[i] = 1;
    return solve(factor, size, unit);
  });
  // Rounding must not make it asymmetric.
  return columns.map((column, i) => column.map((value, j) => (value + columns[j][i]) / 2));
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
