import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { describeStep, taughtText, undoneText } from "../page/change_text.js";
import { advice, countText, intervalText, sumText } from "../page/class_advice.js";
import { predictionParts, predictionText, shortParts } from "../page/prediction_text.js";
import { byFolder, isPicture, readEntries } from "../page/folders.js";
import { Problem, Unreachable } from "../page/problems.js";
import { TaughtSteps } from "../page/taught_steps.js";
import { counted, isolated, percent, sentence, similarName } from "../page/text.js";
import { looksLikeToken, tokenOfAddress } from "../page/token.js";

/** Text parts as one string, with marked names in brackets. */
function joined(parts) {
  return parts.map((part) => (typeof part === "string" ? part : `[${part.name}]`)).join("");
}

test("numbers and names in words", () => {
  assert.equal(percent(0.126), "13%");
  assert.equal(counted(1, "picture"), "1 picture");
  assert.equal(counted(0, "class", "classes"), "0 classes");
  assert.equal(isolated("חתול"), "\u2068חתול\u2069");
});

for (const [name, other, similar] of JSON.parse(readFileSync(new URL("similar_names.json", import.meta.url)))) {
  test(`${name} is ${similar ? "similar to" : "different from"} ${other}`, () => {
    assert.equal(similarName(name, ["first", other]), similar ? other : null);
    assert.equal(similarName(other, ["first", name]), similar ? name : null);
  });
}

test("a name that exists is not similar to another one", () => {
  assert.equal(similarName("sunflower", ["sunflower", "Sunflower"]), null);
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
  const top = [{ name: "mug" }, { name: "cup" }];
  const prediction = { known: true, label: "mug", fine: null, probability: 0.9, top };
  const unknown = { ...prediction, known: false, label: null };
  assert.equal(joined(predictionParts(prediction)), "This is [mug]");
  assert.equal(joined(predictionParts({ ...prediction, probability: 0.4 })), "Perhaps [mug]");
  assert.equal(joined(predictionParts({ ...prediction, fine: "red" })), "This is [mug] · [red]");
  assert.equal(joined(predictionParts(unknown)), "I don’t know this.");
  assert.equal(predictionText(prediction), "\u2068mug\u2069, 90%");
  assert.equal(predictionText(unknown), "I don’t know this.");
  assert.deepEqual([joined(shortParts(prediction)), joined(shortParts(unknown))], ["[mug]", "Unknown"]);
});

test("one class is no prediction", () => {
  for (const known of [true, false]) {
    const answer = { known, label: known ? "mug" : null, fine: null, probability: 1, top: [{ name: "mug", probability: 1 }] };
    assert.equal(joined(predictionParts(answer)), "I know only [mug] so far.");
    assert.equal(predictionText(answer), "I know only \u2068mug\u2069 so far.");
    assert.deepEqual(shortParts(answer), []);
  }
});

/** A step as the service describes it. */
function stepOf(kind, body, n = 1, labels = ["a"], nChanges = 1) {
  return { kind, body, n_changes: nChanges, n_examples: n, kinds: { [kind]: nChanges }, labels, n_labels: labels.length };
}

const moved = { from: { label: "a" }, to: { label: "b" } };
const kindOnly = { from: { label: "a" }, to: { label: "a", fine: "x" } };

const steps = [
  [stepOf("teach", { label: "a" }), "1 picture of [a]"],
  [stepOf("teach", { label: "a" }, 6, ["a"], 6), "6 pictures of [a]"],
  [{ ...stepOf("teach", { label: "a" }, 6, ["a", "b", "c"], 6), n_labels: 5 }, "6 pictures of 5 classes"],
  [stepOf("relabel", moved), "moved 1 picture to [b]"],
  [stepOf("relabel", moved, 2, ["a", "c"]), "moved 2 pictures to [b]"],
  [stepOf("relabel", moved, 2, ["a"], 2), "moved 2 pictures of [a]"],
  [stepOf("relabel", moved, 2, ["a", "c"], 2), "moved 2 pictures of 2 classes"],
  [stepOf("relabel", moved, 2, [], 2), "moved 2 pictures"],
  [stepOf("relabel", kindOnly, 2), "the kind of 2 pictures of [a]"],
  [stepOf("confirm", { label: "a", examples: [1] }, 0, []), "kept 1 picture in [a]"],
  [stepOf("remove", { label: "a" }, 3), "removed 3 pictures of [a]"],
  [stepOf("forget", { label: "a" }, 9), "forgot [a]"],
  [stepOf("rename", { from: "a", to: "b" }, 0, []), "renamed [a] to [b]"],
  [stepOf("merge", { label: "a", into_label: "b" }, 9), "merged [a] into [b]"],
  [stepOf("split", { label: "a" }, 0, []), "split [a]"],
  [stepOf("unsplit", { label: "a" }, 0, []), "joined [a]"],
  [stepOf("unheard of", {}), "the last change"],
  [{ ...stepOf("relabel", moved, 3, ["a"], 3), kinds: { teach: 1, relabel: 2 } }, "3 changes"],
];

for (const [step, expected] of steps) {
  test(`the step ${expected}`, () => assert.equal(joined(describeStep(step)), expected));
}

test("an undone step is told in a sentence", () => {
  const told = (step) => joined(undoneText(step));
  const taught = stepOf("teach", { label: "a" }, 6, ["a"], 6);
  assert.equal(told(stepOf("teach", { label: "a" })), "Undone: 1 picture of [a] was removed.");
  assert.equal(told(taught), "Undone: 6 pictures of [a] were removed.");
  assert.equal(told(stepOf("split", { label: "a" }, 3)), "Undone: split [a].");
  assert.equal(told(stepOf("relabel", moved)), "Undone: moved 1 picture to [b].");
  assert.equal(told({ ...taught, kinds: { teach: 5, relabel: 1 } }), "Undone: 6 changes.");
});

test("what was taught with one action is one step", () => {
  const steps = new TaughtSteps();
  steps.add("one", 1, { label: "a", picture: { id: 1 } });
  steps.add("one", 2, { label: "b" });
  steps.add("two", 3, { label: "a", picture: { id: 3 } });
  assert.deepEqual(steps.of("one"), { events: [1, 2], kinds: { teach: 2 }, labels: ["a", "b"], pictures: [{ id: 1 }] });
  assert.equal(steps.with(2), steps.of("one"));
  steps.remove(steps.with(1));
  assert.deepEqual([steps.of("one"), steps.with(2), steps.with(3).events], [null, null, [3]]);
  for (let i = 0; i < 60; i += 1) steps.add(`more ${i}`, 10 + i, { label: "a" });
  assert.deepEqual([steps.of("two"), steps.with(69).events], [null, [69]]);
  steps.clear();
  assert.equal(steps.with(69), null);
});

test("a moved picture belongs to the step, but does not come back to the tray", () => {
  const steps = new TaughtSteps();
  steps.add("one", 1, { label: "a", picture: { id: 1 } });
  steps.add("one", 2, { label: "a", picture: { id: 2 }, movedFrom: "b" });
  assert.deepEqual(steps.with(2).pictures, [{ id: 1 }]);
  assert.deepEqual([steps.with(2).kinds, steps.with(2).labels], [{ teach: 1, relabel: 1 }, ["a", "b"]]);
});

/** A dropped file or folder, as browsers describe it. */
function entry(name, children) {
  if (children === undefined) return { name, isDirectory: false, file: (give) => give({ name, type: "" }) };
  const parts = [children.slice(0, 2), children.slice(2), []].filter((part, i) => i === 2 || part.length > 0);
  return { name, isDirectory: true, createReader: () => ({ readEntries: (give) => give(parts.shift()) }) };
}

/** Names of the files of each class among dropped entries. */
async function dropped(...entries) {
  const { found } = await readEntries(entries, 99);
  return [...byFolder(found)].map(([folder, files]) => [folder, files.map((file) => file.name)]);
}

test("a folder without folders is a class", async () => {
  const rose = entry("rose", [entry("2.jpg"), entry("1.jpg"), entry(".DS_Store"), entry("3.jpg")]);
  const mug = entry("mug", [entry("4.jpg"), entry("notes", [entry("a.txt")])]);
  assert.deepEqual(await dropped(rose, mug, entry("loose.jpg")), [
    ["rose", ["1.jpg", "2.jpg", "3.jpg"]],
    ["mug", ["4.jpg"]],
    [null, ["loose.jpg"]],
  ]);
});

test("the folders of a folder are classes, with all that they hold", async () => {
  const rose = entry("rose", [entry("1.jpg"), entry("old", [entry("2.jpg"), entry("older", [entry("3.jpg")])])]);
  const photos = entry("photos", [entry("0.jpg"), rose, entry("mug", [entry("4.jpg")]), entry("__MACOSX", [entry("x.jpg")])]);
  assert.deepEqual(await dropped(photos, entry("pen", [entry("5.jpg")])), [
    ["mug", ["4.jpg"]],
    ["rose", ["3.jpg", "2.jpg", "1.jpg"]],
    [null, ["0.jpg"]],
    ["pen", ["5.jpg"]],
  ]);
});

test("reading of folders stops when there are enough pictures, whatever other files there are", async () => {
  const files = ["1.txt", "2.txt", "3.jpg", "4.jpg", "5.jpg"].map((name) => entry(name));
  const { found, others } = await readEntries([entry("a", files)], 2);
  assert.deepEqual([found.map(({ file }) => file.name), others.length], [["3.jpg", "4.jpg"], 2]);
});

test("pictures are known by their type, or by the ending of their name", () => {
  const facts = [["a", "image/png"], ["a.HEIC", ""], ["a.tiff", ""], ["a.txt", "text/plain"], ["jpg", ""]];
  assert.deepEqual(facts.map(([name, type]) => isPicture({ name, type })), [true, true, true, false, false]);
});

const begun = { sign: "new", n_examples: 2, accuracy: null, confused_with: null, confused_share: null, n_unknown: null };
const measured = { rate: 0.9, low: 0.75, high: 0.97, n: 20 };

test("a new class needs about five pictures", () => {
  assert.equal(countText(begun), "2 pictures; show about 5");
  assert.equal(countText({ ...begun, n_examples: 5 }, 3), "5 pictures (3 more waiting to be sent)");
  assert.equal(joined(advice(begun)), "Show a few different views of it.");
});

test("a confused class names the other one", () => {
  const confused = { ...begun, sign: "confused", accuracy: measured, confused_with: "cup", confused_share: 0.1 };
  const text = joined(advice(confused));
  assert.match(text, /^90% right\./);
  assert.match(text, /Often mistaken for \[cup\] \(10% of its pictures\)\.$/);
  assert.equal(intervalText(measured), "Measured on 20 pictures; likely between 75% and 97%.");
});

test("a class may have enough pictures before it is measured", () => {
  assert.equal(joined(advice({ ...begun, sign: "enough" })), "Not measured yet.");
});

test("an accuracy is never told without the pictures that are reported as unknown", () => {
  const sure = { rate: 1, low: 0.76, high: 1, n: 12 };
  const told = (n_unknown, sign = "enough") => joined(advice({ ...begun, sign, accuracy: sure, n_unknown }));
  // An exported page never measures it, and says nothing.
  assert.ok(!told(undefined).includes("unknown"));
  assert.equal(told(null), "100% right. How many are reported as unknown is not measured.");
  assert.equal(told(null, "more"), "100% right. Add a few more to be sure.");
  assert.equal(told(0), "100% right.");
  assert.equal(told(2), "100% right, 2 of 12 reported as unknown.");
  assert.equal(told(7), "100% right, 7 of 12 reported as unknown. More pictures help.");
  assert.equal(told(7, "more"), "100% right, 7 of 12 reported as unknown. Add a few more to be sure.");
});

test("the only class is measured after a second one was taught", () => {
  const only = joined(advice({ ...begun, sign: "more", n_examples: 12 }, true));
  assert.equal(only, "Teach a second thing; then this is measured.");
  const measured = { ...begun, sign: "more", n_examples: 12 };
  assert.equal(joined(advice(measured, false)), "Not measured yet. Add a few more to be sure.");
});

test("a token fits into a header", () => {
  assert.equal(looksLikeToken("eg_teach_abc"), true);
  for (const text of ["", "two words", "é", "a".repeat(513)]) assert.equal(looksLikeToken(text), false);
});

test("the token of an address is taken from its fragment", () => {
  assert.equal(tokenOfAddress("#token=eg_teach_abc"), "eg_teach_abc");
  for (const text of ["", "#teach", "#token=", "#token=two words"]) assert.equal(tokenOfAddress(text), null);
});

test("what was taught is counted by step and by class", () => {
  const told = (done) => joined(taughtText({ label: "mug", ...done }));
  assert.equal(told({ n: 2, total: 4 }), "Taught 2 pictures of [mug] (4 in all).");
  assert.equal(told({ n: 1, total: 1 }), "Taught 1 picture of [mug].");
  assert.equal(told({ n: 1, total: 3, moved: true }), "Moved 1 picture to [mug] (3 in all).");
});

test("the accuracy of all classes says how many were measured", () => {
  const status = { n_classes: 2, n_examples: 9, accuracy: { rate: 0.9 }, measured_false_alarms: null };
  const [measured, begun] = [{ accuracy: { rate: 0.9 } }, { accuracy: null }];
  assert.equal(sumText(status, [measured, measured]), "2 classes, 9 pictures; 90% right.");
  const part = "2 classes, 9 pictures; 90% right (1 of 2 classes measured).";
  assert.equal(sumText(status, [measured, begun]), part);
  const alarms = { ...status, accuracy: null, measured_false_alarms: 0.1 };
  const unknown = "2 classes, 9 pictures; 10% of known things are reported as unknown.";
  assert.equal(sumText(alarms, [begun, begun]), unknown);
});
