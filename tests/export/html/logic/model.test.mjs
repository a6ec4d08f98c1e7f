import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Model } from "../page/model.js";
import { readTensors } from "../page/tensors.js";

const cases = JSON.parse(readFileSync(new URL("./cases.json", import.meta.url)));

function load({ file }) {
  const bytes = readFileSync(new URL(`./${file}`, import.meta.url));
  const { facts, arrays } = readTensors(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  return new Model(facts.head, arrays);
}

function finish(generator) {
  for (;;) {
    const { done, value } = generator.next();
    if (done) return value;
  }
}

function close(found, expected, tolerance, what) {
  assert.equal(found.length, expected.length, what);
  found.forEach((value, i) => assert.ok(Math.abs(value - expected[i]) <= tolerance * Math.max(1, Math.abs(expected[i])), `${what}: ${value} is not ${expected[i]}`));
}

function check(model, queries, expected, tolerance) {
  const { classes, weights, probabilities, novelty, known } = expected;
  assert.deepEqual(model.classes.map(({ name }) => name), classes);
  close([...model.weights].flatMap((row) => [...row]), weights.flat(), tolerance, "weights");
  queries.forEach((query, i) => {
    const answer = model.predict(Float32Array.from(query));
    const shares = new Map(answer.top.map(({ name, probability }) => [name, probability]));
    close(classes.map((name) => shares.get(name)), probabilities[i], tolerance, "probabilities");
    if (novelty === null) assert.equal(answer.novelty, null);
    else close([answer.novelty], [novelty[i]], tolerance, `novelty of ${i}`);
    if (known !== null) assert.equal(answer.known, known[i]);
  });
}

for (const one of cases) {
  test(`a model of ${one.name} answers as Python does`, () => {
    check(load(one), one.queries, one.before, 1e-9);
  });

  test(`a model of ${one.name} recognises its examples by the others as Python does`, () => {
    const found = finish(load(one).assess()).map(({ accuracy }) => accuracy?.rate ?? null);
    if (one.left_out !== null && one.name !== "many examples") close(found, one.left_out, 1e-12, "accuracy");
  });

  test(`a model of ${one.name} learns single examples and new classes as Python does`, () => {
    const model = load(one);
    // Its factors are there, so that they are followed.
    model.predict(Float32Array.from(one.queries[0]));
    one.lessons.forEach((row, i) => model.add(`${i}`, Float32Array.from(row), one.labels[i]));
    finish(model.calibrate());
    close([...model.weights].flatMap((row) => [...row]), one.after.weights.flat(), 1e-6, "weights");
    if (!one.is_exact) return;
    check(model, one.queries, one.after, 1e-6);
    if (one.after.level !== null) close([model.calibration.level], [one.after.level], 1e-6, "level");
  });

  test(`a model of ${one.name} forgets what it has learnt`, () => {
    const model = load(one);
    model.predict(Float32Array.from(one.queries[0]));
    one.lessons.forEach((row, i) => model.add(`${i}`, Float32Array.from(row), one.labels[i]));
    one.lessons.forEach((_, i) => model.remove(`${i}`));
    const known = one.before.classes.length;
    close([...model.weights].slice(0, known).flatMap((row) => [...row]), one.before.weights.flat(), 1e-6, "weights");
    assert.deepEqual(model.classes.slice(known).map(({ n }) => n), model.classes.slice(known).map(() => 0));
  });

  test(`a model of ${one.name} learns all lessons at once as it does one by one`, () => {
    const [together, single] = [load(one), load(one)];
    single.predict(Float32Array.from(one.queries[0]));
    const lessons = one.lessons.map((row, i) => ({ key: `${i}`, embedding: Float32Array.from(row), label: one.labels[i] }));
    together.addAll(lessons);
    for (const { key, embedding, label } of lessons) single.add(key, embedding, label);
    close([...together.weights].flatMap((row) => [...row]), [...single.weights].flatMap((row) => [...row]), 1e-8, "weights");
  });
}
