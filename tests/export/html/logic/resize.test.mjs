import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { prepare } from "../page/resize.js";

const read = (name) => readFileSync(new URL(`./${name}`, import.meta.url));
const cases = JSON.parse(read("pictures.json"));

function withAlpha(bytes) {
  const data = new Uint8ClampedArray((bytes.length / 3) * 4).fill(255);
  for (let i = 0; i < bytes.length / 3; i += 1) data.set(bytes.subarray(3 * i, 3 * i + 3), 4 * i);
  return data;
}

for (const { image, width, height, preprocessing, prepared } of cases) {
  const { interpolation, resize } = preprocessing;
  test(`${width} x ${height} with ${interpolation} and ${resize} is as Pillow has it`, () => {
    const found = prepare({ data: withAlpha(read(image)), width, height }, preprocessing);
    const bytes = read(prepared);
    const expected = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    assert.deepEqual([...found], [...expected]);
  });
}
