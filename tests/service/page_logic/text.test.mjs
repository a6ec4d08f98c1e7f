import assert from "node:assert/strict";
import { test } from "node:test";

import { describeChange, isUndoable } from "../page/change_text.js";
import { advice, countText } from "../page/class_advice.js";
import { predictionParts, predictionText } from "../page/prediction_text.js";
import { Problem, Unreachable } from "../page/problems.js";
import { counted, isolated, percent, sentence } from "../page/text.js";
import { looksLikeToken } from "../page/token.js";

/** Text parts as one string, with marked names in brackets. */
function joined(parts) {
  return parts.map((part) => (typeof part === "string" ? part : `[${part.name}]`)).join("");
}

test("numbers and names in words", () => {
  assert.equal(percent(0.126), "13 %");
  assert.equal(counted(1, "picture"), "1 picture");
  assert.equal(counted(0, "class", "classes"), "0 classes");
  assert.equal(isolated("חתול"), "\u2068חתול\u2069");
});

test("messages of the service become sentences", () => {
  assert.equal(sentence("the disk is full"), "The disk is full.");
  assert.equal(sentence("Wait …"), "Wait …");
  assert.equal(sentence(404), "404.");
});

test("errors say whether a retry may help and whether the request may have been carried out", () => {
  const facts = (error) => [error.temporary, error.uncertain];
  assert.deepEqual(facts(new Problem(422, "")), [false, false]);
  assert.deepEqual(facts(new Problem(429, "")), [true, false]);
  assert.deepEqual(facts(new Problem(503, "")), [true, false]);
  assert.deepEqual(facts(new Problem(502, "")), [true, true]);
  assert.deepEqual(facts(new Unreachable()), [true, true]);
});

test("predictions", () => {
  const prediction = { known: true, label: "mug", fine: null, probability: 0.9 };
  assert.equal(joined(predictionParts(prediction)), "This is [mug]");
  assert.equal(joined(predictionParts({ ...prediction, probability: 0.4 })), "Perhaps [mug]");
  assert.equal(joined(predictionParts({ ...prediction, fine: "red" })), "This is [mug] · [red]");
  assert.equal(joined(predictionParts({ ...prediction, known: false })), "I don’t know this.");
  assert.equal(predictionText(prediction), "\u2068mug\u2069, 90 %");
  assert.equal(predictionText({ ...prediction, known: false }), "I don’t know this.");
});

const changes = [
  ["teach", { label: "mug" }, "taught [mug]"],
  ["relabel", { from: { label: "a" }, to: { label: "b" } }, "moved a picture to [b]"],
  ["relabel", { from: { label: "a" }, to: { label: "b" }, examples: [1, 2] }, "moved 2 pictures to [b]"],
  ["relabel", { from: { label: "a" }, to: { label: "a", fine: "x" } }, "gave a picture of [a] a finer name"],
  [
    "relabel",
    { from: { label: "a" }, to: { label: "a", fine: null }, examples: [1, 2] },
    "gave 2 pictures of [a] no finer names",
  ],
  ["confirm", { label: "a", examples: [1] }, "kept a picture in [a]"],
  ["remove", { label: "a", examples: [1, 2, 3] }, "removed 3 pictures of [a]"],
  ["forget", { label: "a" }, "forgot [a]"],
  ["rename", { from: "a", to: "b" }, "renamed [a] to [b]"],
  ["merge", { label: "a", into_label: "b" }, "merged [a] into [b]"],
  ["split", { label: "a" }, "split [a]"],
  ["unsplit", { label: "a" }, "joined [a]"],
];

for (const [kind, body, expected] of changes) {
  test(`the change ${expected}`, () => assert.equal(joined(describeChange({ kind, body })), expected));
}

test("users undo their own changes, once", () => {
  assert.equal(isUndoable({ kind: "teach", undone_by: null }), true);
  assert.equal(isUndoable({ kind: "teach", undone_by: 7 }), false);
  assert.equal(isUndoable({ kind: "guess", undone_by: null }), false);
});

const entry = { sign: "new", n_examples: 2, accuracy: null, confused_with: null, confused_share: null };
const measured = { rate: 0.9, low: 0.75, high: 0.97, n: 20 };

test("a new class needs about five pictures", () => {
  assert.equal(countText(entry), "2 pictures; show about 5");
  assert.equal(countText({ ...entry, n_examples: 5 }, 3), "5 pictures (3 more waiting to be sent)");
  assert.equal(joined(advice(entry)), "Show a few different views of it.");
});

test("a confused class names the other one", () => {
  const confused = { ...entry, sign: "confused", accuracy: measured, confused_with: "cup", confused_share: 0.1 };
  const text = joined(advice(confused));
  assert.match(text, /^Recognised 90 % of the time \(likely between 75 % and 97 %; measured on 20 pictures\)/);
  assert.match(text, /Often mistaken for \[cup\] \(10 % of its pictures\)\.$/);
});

test("a class may have enough pictures before it is measured", () => {
  assert.equal(joined(advice({ ...entry, sign: "enough" })), "Not measured yet.");
});

test("a token fits into a header", () => {
  assert.equal(looksLikeToken("eg_teach_abc"), true);
  for (const text of ["", "two words", "é", "a".repeat(513)]) assert.equal(looksLikeToken(text), false);
});
