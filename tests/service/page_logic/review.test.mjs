import assert from "node:assert/strict";
import { test } from "node:test";

import { confusedPairs, rowTotal } from "../page/confusion_matrix.js";
import { doubtItem, guessItem, keysOf, unnamedItem } from "../page/review_items.js";
import { firstBatch } from "../page/upload_batch.js";

const top = [
  { name: "mug", probability: 0.7 },
  { name: "cup", probability: 0.2 },
];
const answer = { known: true, label: "mug", fine: "red", probability: 0.7, top };

test("an unnamed picture offers the predicted classes", () => {
  const item = unnamedItem({ id: 3, answer }, ["cup", "mug"]);
  assert.deepEqual(
    item.choices.map((choice) => choice.names),
    [
      { label: "mug", fine: "red" },
      { label: "cup", fine: null },
    ],
  );
  assert.deepEqual([item.acceptable, item.certainty, item.hint], [true, 0.7, ""]);
  assert.deepEqual(item.newName("pen"), { label: "pen", fine: null });
  assert.deepEqual(item.otherNames(), ["cup", "mug"]);
});

test("Enter does not accept a class for an unknown picture, which comes first", () => {
  const unknown = unnamedItem({ id: 1, answer: { ...answer, known: false } }, []);
  assert.equal(unknown.acceptable, false);
  assert.ok(unknown.certainty < 0);
  assert.equal(unknown.hint, "This doesn’t look like any class you have taught.");
  // A share of the known classes would contradict it.
  assert.deepEqual(unknown.choices.map(({ share }) => share), [null, null]);
});

test("with one class there is nothing to accept and no percentage", () => {
  const item = unnamedItem({ id: 1, answer: { ...answer, top: top.slice(0, 1) } }, []);
  assert.deepEqual([item.acceptable, item.choices[0].share], [false, null]);
  assert.equal(item.hint, "I know only \u2068mug\u2069 so far.");
});

test("the listed keys are those that do something", () => {
  const keys = (item) => keysOf(item).map(([key]) => key);
  assert.deepEqual(keys(unnamedItem({ id: 1, answer }, [])), ["1–2", "Enter", "N", "S", "U", "?"]);
  const unknown = keysOf(unnamedItem({ id: 1, answer: { ...answer, known: false } }, []));
  assert.deepEqual(unknown.slice(0, 2), [["1–2", "choose"], ["Enter", "type a name"]]);
  assert.deepEqual(keys(unnamedItem({ id: 1, answer: null }, [])), ["Enter", "S", "U", "?"]);
});

test("a picture without a prediction has no choices", () => {
  const item = unnamedItem({ id: 1, answer: null }, []);
  assert.deepEqual([item.choices, item.acceptable, item.certainty, item.hint], [[], false, -1, ""]);
});

const example = { id: 5, label: "mug" };

test("a guess comes first among the kinds, nine at most", () => {
  const kinds = Array.from({ length: 12 }, (_, i) => `kind ${i}`);
  const item = guessItem({ example, suggestion: "kind 4", probability: 0.6 }, kinds);
  assert.equal(item.choices.length, 9);
  assert.deepEqual(item.choices[0], { verb: "", name: "kind 4", share: 0.6, names: { fine: "kind 4" } });
  assert.equal(item.choices.filter((choice) => choice.name === "kind 4").length, 1);
  assert.equal(item.choices[1].share, null);
  assert.deepEqual(item.newName("new"), { fine: "new" });
});

test("what was taught comes before what the model prefers", () => {
  const item = doubtItem({ example, suggestion: "cup", probability: 0.8 }, ["cup", "mug"]);
  assert.deepEqual(
    item.choices.map(({ verb, names }) => [verb, names.label]),
    [
      ["Keep ", "mug"],
      ["Move to ", "cup"],
    ],
  );
  assert.ok(Math.abs(item.certainty - 0.2) < 1e-12);
  assert.equal(item.key, "example 5");
});

const labels = ["a", "b", "c"];
const counts = [
  [8, 2, 0],
  [2, 2, 0],
  [0, 1, 9],
];

test("pairs are sorted by count, then by share", () => {
  const totals = counts.map((row) => rowTotal(row));
  const pairs = confusedPairs(labels, counts, totals).map(({ is, called, times, n }) => [is, called, times, n]);
  assert.deepEqual(pairs, [
    ["b", "a", 2, 4],
    ["a", "b", 2, 10],
    ["c", "b", 1, 10],
  ]);
});

test("pictures of columns that are not shown count as well, and unknown ones once", () => {
  assert.equal(rowTotal([2, 1]), 3);
  assert.equal(rowTotal([2, 1], 10), 10);
});

const pictures = (...sizes) => sizes.map((size) => ({ image: { size } }));

test("a batch respects the limits of the service and has at least one picture", () => {
  const limits = { max_request_bytes: 1000, max_images: 32 };
  assert.equal(firstBatch(pictures(...Array(20).fill(1)), limits).length, 8);
  assert.equal(firstBatch(pictures(...Array(20).fill(1)), { ...limits, max_images: 3 }).length, 3);
  assert.equal(firstBatch(pictures(400, 400, 400), limits).length, 2);
  assert.equal(firstBatch(pictures(5000, 1), limits).length, 1);
});
