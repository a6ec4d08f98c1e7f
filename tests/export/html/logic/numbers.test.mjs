import assert from "node:assert/strict";
import { test } from "node:test";
import { recognised, signOf, wilson } from "../page/accuracy.js";
import { factorise, inverse, solveAll, solveHalves, update } from "../page/cholesky.js";
import { groupLessons, lessonsFile } from "../page/lessons_file.js";
import { readTensors, writeTensors } from "../page/tensors.js";

/** A positive definite matrix, as rows. */
function definite(size) {
  const rows = Array.from({ length: size }, (_, i) => Float64Array.from({ length: size }, (__, j) => Math.sin(i * 7 + j * 3)));
  return rows.map((one, i) => Float64Array.from(rows, (other, j) => one.reduce((sum, value, k) => sum + value * other[k], i === j ? 1 : 0)));
}

const flat = (rows) => Float64Array.from(rows.flatMap((row) => [...row]));

test("a factor solves its equations, across panels", () => {
  const size = 75;
  const matrix = definite(size);
  const factor = flat(matrix);
  assert.ok(factorise(factor, size));
  const right = Float64Array.from({ length: size }, (_, i) => i - 3);
  const [found] = solveAll(factor, size, [right.slice()]);
  matrix.forEach((row, i) => assert.ok(Math.abs(row.reduce((sum, value, j) => sum + value * found[j], 0) - right[i]) < 1e-9));
});

test("a factor that followed a row is that of the sum, and back", () => {
  const size = 20;
  const factor = flat(definite(size));
  factorise(factor, size);
  const before = factor.slice();
  const row = Float64Array.from({ length: size }, (_, i) => Math.cos(i));
  const half = update(factor, size, row, 1);
  solveHalves(factor, size, [row.slice()])[0].forEach((value, i) => assert.ok(Math.abs(value - half[i]) < 1e-12));
  const sum = flat(definite(size).map((one, i) => one.map((value, j) => value + row[i] * row[j])));
  factorise(sum, size);
  for (let i = 0; i < size; i += 1) for (let j = i; j < size; j += 1) assert.ok(Math.abs(factor[i * size + j] - sum[i * size + j]) < 1e-9);
  const back = update(factor, size, row, -1);
  solveHalves(factor, size, [row.slice()])[0].forEach((value, i) => assert.ok(Math.abs(value - back[i]) < 1e-9));
  for (let i = 0; i < size; i += 1) for (let j = i; j < size; j += 1) assert.ok(Math.abs(factor[i * size + j] - before[i * size + j]) < 1e-9);
});

test("a matrix that is not definite is found", () => {
  assert.equal(factorise(Float64Array.from([1, 2, 2, 1]), 2), false);
  assert.equal(update(Float64Array.from([1]), 1, Float64Array.from([2]), -1), null);
  assert.equal(inverse([Float64Array.from([1, 2]), Float64Array.from([2, 1])]), null);
});

test("rates and signs are those of the service", () => {
  assert.equal(Math.round(100 * wilson(12, 12).low), 76);
  assert.equal(wilson(0, 3).low, 0);
  assert.deepEqual([signOf(1, null), signOf(5, wilson(5, 5)), signOf(20, wilson(20, 20)), signOf(20, wilson(5, 20))], ["new", "more", "enough", "confused"]);
});

test("the class that is taken most often is named", () => {
  const [first, second] = recognised([0, 0, 0, 1], [0, 1, 1, null], 2);
  assert.equal(first.confusedWith, 1);
  assert.equal(first.accuracy.rate, 1 / 3);
  assert.equal(second.accuracy, null);
});

test("arrays are read as they were written", async () => {
  const arrays = { a: { shape: [2], values: Float64Array.from([1, -2]) }, b: { shape: [3], values: Uint8Array.from([1, 2, 3]) } };
  const found = readTensors(await writeTensors({ x: "ü" }, arrays).arrayBuffer());
  assert.deepEqual(found.facts, { x: "ü" });
  assert.deepEqual(found.arrays, arrays);
});

test("a file of lessons is JSON", () => {
  const one = { key: "k", label: '"</script>', sha256: "s", at: "t", picture: "AAAA", embedding: [1] };
  const found = JSON.parse(lessonsFile("page", [one, one]).join(""));
  assert.equal(found.lessons.length, 2);
  assert.deepEqual(Object.keys(found.lessons[0]).sort(), ["at", "key", "label", "picture", "sha256"]);
  assert.deepEqual(JSON.parse(lessonsFile("page", []).join("")).lessons, []);
});

test("lessons that are too many or too large for one file become several", () => {
  const sized = (...sizes) => sizes.map((size) => ({ image: { size } }));
  const sizesOf = (groups) => groups.map((group) => group.map(({ image }) => image.size));
  assert.deepEqual(groupLessons([]), []);
  assert.deepEqual(sizesOf(groupLessons(sized(4, 5, 2, 30, 1, 1), 10)), [[4, 5], [2], [30], [1, 1]]);
  assert.deepEqual(sizesOf(groupLessons(sized(1, 1, 1), 10, 2)), [[1, 1], [1]]);
});
