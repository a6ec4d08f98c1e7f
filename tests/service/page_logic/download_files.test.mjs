import assert from "node:assert/strict";
import { test } from "node:test";

import { downloadFiles, fileSize, savedText } from "../page/download_files.js";

const STATUS = { n_examples: 5, n_classes: 1, takes_images: true, event: 7 };
const refusals = (status) =>
  Object.fromEntries(downloadFiles({ ...STATUS, ...status }).map(({ file, refused }) => [file, refused]));

test("every file of a workspace with pictures can be downloaded", () => {
  assert.deepEqual([...new Set(Object.values(refusals({})))], [null]);
});

test("an empty workspace says that nothing was taught", () => {
  const found = refusals({ n_examples: 0, n_classes: 0, event: 0 });
  assert.deepEqual([...new Set(Object.values(found))], ["Nothing has been taught yet."]);
});

test("the audit log of a workspace that forgot everything remains", () => {
  const found = refusals({ n_examples: 0, n_classes: 0 });
  assert.equal(found["audit-log"], null);
  assert.notEqual(found.model, null);
});

test("a workspace of embeddings has no pictures, and no page that takes some", () => {
  const found = refusals({ takes_images: false });
  for (const file of ["pictures", "html"]) assert.match(found[file], /not pictures/);
  for (const file of ["model", "onnx", "labels"]) assert.equal(found[file], null);
});

test("the table says how much it has", () => {
  const labels = downloadFiles(STATUS).find(({ file }) => file === "labels");
  assert.equal(labels.about, "A table (CSV) of 5 examples of 1 class.");
});

test("sizes have two digits or more and a unit", () => {
  const sizes = [0, 999, 1000, 9949, 9951, 999_499, 999_500, 15_234_567, 3.2e9, 5e15];
  assert.deepEqual(sizes.map(fileSize), [
    "0 bytes",
    "999 bytes",
    "1.0 kB",
    "9.9 kB",
    "10 kB",
    "999 kB",
    "1.0 MB",
    "15 MB",
    "3.2 GB",
    "5000 TB",
  ]);
});

test("what is saved is named, with its size if that is known", () => {
  assert.equal(savedText({ name: "a.zip", n_bytes: 1500 }), "Your browser saves a.zip (1.5 kB).");
  assert.equal(savedText({ name: "a.csv", n_bytes: null }), "Your browser saves a.csv.");
});
