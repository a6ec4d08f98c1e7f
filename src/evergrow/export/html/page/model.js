/** The model of a page: it answers embeddings, and learns and forgets single ones. */

import { Calibration } from "./calibration.js";
import { predictLeftOut } from "./left_out.js";
import { recognised } from "./accuracy.js";
import { SummedScores } from "./novelty.js";
import { Ridge } from "./ridge.js";
import { ClassScale, softmax } from "./scoring.js";
import { Sums } from "./sums.js";

// Examples that are enough to weight the scores of novelty.
const MOST_REHEARSED = 1000;
// Examples that are solved for together.
const BLOCK = 16;

export class Model {
  #settings;
  #names;
  #sums;
  #ridge;
  #novelty = null;
  #calibration = null;
  // Learnt examples that are at hand, to be left out in turn.
  #stored = [];
  // By key: what was learnt on this page.
  #learnt = new Map();
  #scale = null;
  #summed = null;

  /**
   * @param {object} settings of evergrow.export.html.head
   * @param {object} arrays rows or products, class sums, weights; by name
   */
  constructor(settings, arrays) {
    this.#settings = settings;
    this.#names = [...settings.classes];
    this.#stored = storedExamples(arrays);
    this.#sums = sumsOf(settings, arrays, this.#stored);
    const weights = arrays.weights && rowsOf(arrays.weights);
    this.#ridge = new Ridge(this.#sums, { penalty: settings.penalty, byMeans: settings.by_means, weights });
    const { novelty } = settings;
    if (novelty === null) return;
    if (novelty.penalty !== null) this.#novelty = new Ridge(this.#sums, { penalty: novelty.penalty, byMeans: false });
    this.#calibration = new Calibration({ ...novelty.calibration, level: novelty.calibration.level ?? Infinity });
  }

  /** Number of examples per class, in the order of the classes. */
  get classes() {
    return this.#names.map((name, k) => ({ name, n: this.#sums.classes[k].n }));
  }

  /** Weights of the features and the constant, before recoding. */
  get weights() {
    return this.#ridge.weights;
  }

  get calibration() {
    return this.#calibration;
  }

  /** Solves everything that the first answer needs. */
  prepare() {
    this.#scale ??= new ClassScale(this.#sums, this.#ridge, this.#settings);
    if (this.#calibration !== null && this.#calibration.level !== Infinity) {
      this.#summed ??= new SummedScores(this.#sums, this.#novelty);
    }
  }

  /** @param {Float32Array} embedding */
  predict(embedding) {
    this.prepare();
    const row = withConstant(embedding);
    const scores = this.#scale.scores(this.#ridge.weights, row);
    const probabilities = softmax(scores, this.#settings.temperature);
    const known = this.#sums.known.sort((i, j) => probabilities[j] - probabilities[i] || i - j);
    const novelty = this.#measureNovelty(row);
    return {
      top: known.map((k) => ({ name: this.#names[k], probability: probabilities[k] })),
      known: novelty === null || !this.#calibration.rejects(novelty),
      novelty,
    };
  }

  #measureNovelty(row) {
    if (this.#summed === null) return null;
    return this.#calibration.novelty(this.#summed.best(row));
  }

  /** Learns an example of a known or new class; returns the number of its examples. */
  add(key, embedding, name) {
    const row = withConstant(embedding);
    const code = this.#columnOf(name);
    this.#follow(row, code, 1);
    this.#sums.add(row, code);
    this.#learnt.set(key, { row, code, weight: 1, represented: 1 });
    return this.#sums.classes[code].n;
  }

  /** Learns many examples; factors are computed again, which is faster than following each. */
  addAll(examples) {
    const added = examples.map(({ key, embedding, label }) => {
      const example = { row: withConstant(embedding), code: this.#columnOf(label), weight: 1, represented: 1 };
      this.#learnt.set(key, example);
      return example;
    });
    this.#sums.addAll(added.map(({ row }) => row), added.map(({ code }) => code));
    if (added.length > 0) this.#reset();
  }

  /** Forgets an example that was learnt here. */
  remove(key) {
    const { row, code } = this.#learnt.get(key);
    this.#follow(row, code, -1);
    this.#sums.add(row, code, -1);
    this.#learnt.delete(key);
  }

  /** Moves an example that was learnt here to another class, known or new. */
  move(key, name) {
    const example = this.#learnt.get(key);
    const code = this.#columnOf(name);
    if (code === example.code) return;
    this.#follow(example.row, example.code, -1);
    this.#sums.add(example.row, example.code, -1);
    this.#follow(example.row, code, 1);
    this.#sums.add(example.row, code);
    example.code = code;
  }

  #columnOf(name) {
    const known = this.#names.indexOf(name);
    if (known >= 0) return known;
    this.#names.push(name);
    this.#sums.addClass();
    this.#calibration = this.#calibration?.withClasses(this.#names.length) ?? null;
    return this.#names.length - 1;
  }

  #follow(row, code, sign) {
    this.#ridge.follow(row, code, sign);
    this.#novelty?.follow(row, code, sign);
    this.#scale = null;
    this.#summed = null;
  }

  #reset() {
    this.#ridge.reset();
    this.#novelty?.reset();
    this.#scale = null;
    this.#summed = null;
  }

  get #examples() {
    return [...this.#stored, ...this.#learnt.values()];
  }

  /**
   * Calibrates the novelty again, on all examples that are at hand. A generator: between two steps, other
   * work can be done; if something was learnt meanwhile, it must be started again.
   */
  *calibrate() {
    if (this.#calibration === null) return;
    const sums = this.#sums;
    const summed = new SummedScores(sums, this.#novelty);
    const usable = this.#examples.filter(({ code }) => sums.classes[code].n > 1);
    const found = [];
    const halves = [];
    for (const some of blocks(usable)) {
      yield;
      const solved = summed.halves(some);
      halves.push(...solved);
      some.forEach((example, i) => {
        const { code, weight, represented } = example;
        found.push({ ...summed.leftOut(example, solved[i]), weight: weight * represented, nOwn: sums.classes[code].n });
      });
    }
    const rehearsal = summed.isLinear ? yield* this.#rehearse(summed, usable, found, halves) : null;
    const finite = found.filter(({ score, others }) => Number.isFinite(score) && others.every(Number.isFinite));
    this.#calibration = Calibration.of(finite, this.#names.length, this.#settings.novelty.false_alarms, rehearsal);
  }

  /** Scores of examples as known and as unknown ones: without them, and without their classes. */
  *#rehearse(summed, usable, found, halves) {
    const chosen = thinned(this.#examples);
    let rows = usable;
    let [whole, known, solved] = [summed, found, halves];
    if (chosen.length < this.#sums.nExamples) {
      // By these examples alone, even if more were learnt.
      const sums = new Sums(this.#sums.nFeatures, this.#names.length);
      sums.addAll(chosen.map(({ row }) => row), chosen.map(({ code }) => code), chosen.map(({ weight }) => weight));
      yield;
      const ridge = new Ridge(sums, { penalty: this.#novelty.penalty, byMeans: false });
      yield* ridge.prepare();
      whole = new SummedScores(sums, ridge);
      if (!whole.isLinear) return null;
      rows = chosen.filter(({ code }) => sums.classes[code].n > 1);
      [known, solved] = [[], []];
      for (const some of blocks(rows)) {
        yield;
        const these = whole.halves(some);
        solved.push(...these);
        some.forEach((example, i) => known.push(whole.leftOut(example, these[i])));
      }
    }
    const pairs = [];
    for (const places of byClass(rows)) {
      yield;
      const foreign = whole.foreign(places.map((i) => rows[i]), places.map((i) => solved[i]));
      places.forEach((i, n) => {
        const as = [known[i].score, ...known[i].others];
        const usable = foreign !== null && [...as, ...foreign[n]].every(Number.isFinite);
        if (usable) pairs.push([as, foreign[n], rows[i].code]);
      });
    }
    const nClasses = new Set(pairs.map(([, , code]) => code)).size;
    return nClasses > 1 ? { known: pairs.map(([as]) => as), unknown: pairs.map(([, as]) => as), nClasses } : null;
  }

  /** Measures how often each class is recognised; a generator as `calibrate`. */
  *assess() {
    const examples = this.#examples;
    yield* this.#ridge.prepare();
    const predicted = yield* predictLeftOut(this.#sums, this.#ridge, this.#settings, examples);
    return recognised(examples.map(({ code }) => code), predicted, this.#names.length).map((found) => ({
      ...found,
      confusedWith: found.confusedWith === null ? null : this.#names[found.confusedWith],
    }));
  }
}

function withConstant(embedding) {
  const row = new Float64Array(embedding.length + 1);
  row.set(embedding);
  row[embedding.length] = 1;
  return row;
}

function rowsOf({ shape: [n, size], values }) {
  return Array.from({ length: n }, (_, i) => values.slice(i * size, (i + 1) * size));
}

function storedExamples({ rows, codes, row_weights: weights, represented }) {
  if (rows === undefined) return [];
  return rowsOf(rows).map((row, i) => ({
    row: withConstant(row),
    code: codes.values[i],
    weight: weights?.values[i] ?? 1,
    represented: represented?.values[i] ?? 1,
  }));
}

/** The sums: of the stored examples if these are all, else those of the file. */
function sumsOf(settings, arrays, stored) {
  const { classes, n_features: nFeatures, class_examples: counts } = settings;
  const { products, class_sums: totals, class_weights: weights } = arrays;
  const sums = new Sums(nFeatures + 1, classes.length);
  if (products === undefined) {
    sums.addAll(stored.map(({ row }) => row), stored.map(({ code }) => code), stored.map(({ weight }) => weight));
    return sums;
  }
  let at = 0;
  for (let i = 0; i <= nFeatures; i += 1) {
    const length = nFeatures + 1 - i;
    sums.gram.set(products.values.subarray(at, at + length), i * (nFeatures + 1) + i);
    sums.squares += products.values[at];
    at += length;
  }
  rowsOf(totals).forEach((sum, k) => Object.assign(sums.classes[k], { sum, n: counts[k], weight: weights.values[k] }));
  return sums;
}

function* blocks(examples) {
  for (let first = 0; first < examples.length; first += BLOCK) yield examples.slice(first, first + BLOCK);
}

/** The places of the examples of each class. */
function byClass(examples) {
  const places = new Map();
  examples.forEach(({ code }, i) => places.set(code, [...(places.get(code) ?? []), i]));
  return [...places.values()];
}

/** Every n-th example of each class, about MOST_REHEARSED of them. */
function thinned(examples) {
  const step = Math.ceil(examples.length / MOST_REHEARSED);
  if (step <= 1) return examples;
  return byClass(examples).flatMap((places) => places.filter((_, n) => n % step === 0).map((i) => examples[i]));
}
