/** Network and model, each in a thread of its own. */

import { Thread } from "./calls.js";
import { bytesOf, textOf } from "./payload.js";
import { readTensors } from "./tensors.js";

export const settings = JSON.parse(textOf("settings"));

const head = new Thread([textOf("head-worker")]);
const network = startNetwork();
// An embedding is computed once for each picture, however often it is asked about.
const embeddings = new WeakMap();

/** Fires "measured" when the accuracies of the classes are known. */
export const measured = head;

async function startNetwork() {
  const names = ["runtime-script", "runtime-glue", "runtime-wasm", "network"];
  const [script, glue, wasm, content] = await Promise.all(names.map(bytesOf));
  const thread = new Thread([script, "\n", textOf("network-worker")]);
  const text = new TextDecoder().decode(glue);
  await thread.call("load", [content, text, wasm, settings.network], [content, wasm]);
  return thread;
}

/** The model and the lessons of the file, as arrays. */
export async function readModel() {
  const bytes = await bytesOf("model");
  return { bytes, ...readTensors(bytes) };
}

/** Loads the model; calls that come before it is loaded wait. */
export function loadModel(bytes, lessons) {
  return head.call("load", [bytes, lessons.map(({ key, embedding, label }) => ({ key, embedding, label }))]);
}

/** Embedding and size of a picture; a failed one is tried again. */
export function embed(image) {
  if (!embeddings.has(image)) {
    const found = network.then((thread) => thread.call("embed", [image]));
    embeddings.set(image, found);
    found.catch(() => embeddings.delete(image));
  }
  return embeddings.get(image);
}

export const predict = (vectors) => head.call("predict", [vectors]);
export const classes = () => head.call("classes");
export const inspect = () => head.call("inspect");

const WORK = {
  add: ({ key, embedding, label }) => head.call("add", [key, embedding, label]),
  remove: ({ key }) => head.call("remove", [key]),
  move: ({ key, label }) => head.call("move", [key, label]),
};

/** Does what a change of the lessons asks for; resolves to the last result. */
export async function doWork(work) {
  let result;
  for (const { do: name, lesson } of work) result = await WORK[name](lesson);
  return result;
}
