import assert from "node:assert/strict";
import { test } from "node:test";
import { conflictOf, Lessons } from "../page/lessons.js";

const lesson = (key, label) => ({ key, label, sha256: key });

function teach(lessons, key, label, action) {
  return lessons.apply(lessons.teach(lesson(key, label), action, 1));
}

test("lessons of one action are one step of undo", () => {
  const lessons = new Lessons();
  teach(lessons, "a", "cup", "one");
  teach(lessons, "b", "pen", "two");
  teach(lessons, "c", "pen", "two");
  assert.equal(lessons.undoStep.n_examples, 2);
  assert.deepEqual(lessons.undoStep.labels, ["pen"]);
  const { work } = lessons.undo();
  assert.deepEqual(work.map((one) => [one.do, one.lesson.key]), [["remove", "c"], ["remove", "b"]]);
  assert.deepEqual(lessons.all.map(({ key }) => key), ["a"]);
});

test("a moved picture comes back to its class", () => {
  const lessons = new Lessons();
  teach(lessons, "a", "cup", "one");
  const { id } = lessons.withPicture("a");
  lessons.apply(lessons.relabel([id], "pen", null, 2));
  assert.equal(lessons.get(id).label, "pen");
  assert.deepEqual(lessons.undoStep.body, { from: { label: "cup" }, to: { label: "pen" } });
  lessons.undo();
  assert.equal(lessons.get(id).label, "cup");
});

test("a removed picture comes back", () => {
  const lessons = new Lessons();
  teach(lessons, "a", "cup", "one");
  const { id } = lessons.withPicture("a");
  lessons.apply(lessons.remove([id], 2));
  assert.equal(lessons.all.length, 0);
  assert.deepEqual(lessons.undo().work.map((one) => one.do), ["add"]);
  assert.equal(lessons.get(id).key, "a");
});

test("stored changes give the same lessons again", () => {
  const first = new Lessons([lesson("a", "cup")]);
  const changes = [first.teach(lesson("b", "pen"), "x", 100)];
  first.apply(changes[0]);
  changes.push(first.relabel([1, 2], "thing", null, 200));
  first.apply(changes[1]);
  const again = new Lessons([lesson("a", "cup")], structuredClone(changes));
  assert.deepEqual(again.all, first.all);
  assert.equal(again.event, 200);
});

test("stored changes fit after an undo, and without what another tab has undone", () => {
  const first = new Lessons();
  const changes = [];
  const make = (change) => {
    first.apply(change);
    changes.push(change);
  };
  make(first.teach(lesson("a", "cup"), "x", 1));
  make(first.teach(lesson("b", "cup"), "y", 2));
  first.undo();
  changes.pop();
  make(first.teach(lesson("c", "cup"), "z", 3));
  make(first.relabel([first.withPicture("c").id], "pen", null, 4));
  const labels = (lessons) => lessons.all.map(({ key, label }) => [key, label]);
  assert.deepEqual(labels(new Lessons([], structuredClone(changes))), [["a", "cup"], ["c", "pen"]]);
  const fewer = new Lessons([], structuredClone([changes[0], changes[2]]));
  assert.deepEqual(labels(fewer), [["a", "cup"]]);
  fewer.undo();
  assert.deepEqual(labels(fewer), [["a", "cup"]]);
});

test("numbers of changes grow even if the clock does not", () => {
  const lessons = new Lessons();
  teach(lessons, "a", "cup", "one");
  teach(lessons, "b", "cup", "one");
  assert.equal(lessons.event, 2);
});

test("nothing to undo is said so", () => {
  assert.equal(new Lessons().undoStep.event, null);
  assert.deepEqual(new Lessons().undo(), { changes: [], work: [] });
});

test("a picture that is taught already is a duplicate, moved or refused", () => {
  assert.equal(conflictOf(null, "cup", false), null);
  assert.equal(conflictOf({ label: "cup" }, "cup", false), "duplicate");
  assert.equal(conflictOf({ label: "pen" }, "cup", true), "move");
  assert.equal(conflictOf({ label: "pen" }, "cup", false), 409);
});
