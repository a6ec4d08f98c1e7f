/** The thread of the model: it answers and learns, and measures while nothing else is to be done. */

import { answerCalls } from "./calls.js";
import { Model } from "./model.js";
import { readTensors } from "./tensors.js";

// Lessons often follow each other; measuring waits until they pause. At first it waits longer, because the
// first answer is waited for.
const PAUSE_MS = 250;
const FIRST_PAUSE_MS = 3000;
// Measuring lets other work in after so long.
const SLICE_MS = 25;

let model = null;
let measured = null;
let timer = null;
// Counts changes: a measurement of an earlier state is not finished.
let nChanges = 0;

const report = answerCalls({
  /** @param {Array<object>} lessons key, embedding and label of what was taught before */
  load(buffer, lessons) {
    const { facts, arrays } = readTensors(buffer);
    model = new Model(facts.head, arrays);
    model.addAll(lessons);
    // Solved while the network is being loaded.
    model.prepare();
    measureSoon({ calibrates: lessons.length > 0, pause: FIRST_PAUSE_MS });
  },
  predict(embeddings) {
    return embeddings.map((embedding) => model.predict(embedding));
  },
  add(key, embedding, label) {
    const n = model.add(key, embedding, label);
    measureSoon({ calibrates: true });
    return n;
  },
  remove(key) {
    model.remove(key);
    measureSoon({ calibrates: true });
  },
  move(key, label) {
    model.move(key, label);
    measureSoon({ calibrates: true });
  },
  /** Classes with their number of examples, and how well each was recognised when that was measured last. */
  classes() {
    return model.classes.map((entry, k) => ({ ...entry, ...(measured?.[k] ?? UNMEASURED) }));
  },
  /** The weights before recoding, and the calibration of the novelty. */
  inspect() {
    return { weights: model.weights, calibration: model.calibration && { ...model.calibration } };
  },
});

const UNMEASURED = { accuracy: null, confusedWith: null, confusedShare: null };

function measureSoon({ calibrates, pause = PAUSE_MS }) {
  nChanges += 1;
  clearTimeout(timer);
  timer = setTimeout(() => measure(nChanges, calibrates), pause);
}

async function measure(change, calibrates) {
  if (calibrates && (await runSlices(model.calibrate(), change)) === null) return;
  const found = await runSlices(model.assess(), change);
  if (found === null) return;
  measured = found.value;
  report("measured");
}

/** Runs a generator a slice at a time; resolves to null if the model changed meanwhile. */
async function runSlices(generator, change) {
  for (;;) {
    const end = performance.now() + SLICE_MS;
    while (performance.now() < end) {
      const { done, value } = generator.next();
      if (done) return { value };
    }
    await new Promise((resolve) => setTimeout(resolve));
    if (change !== nChanges) return null;
  }
}
