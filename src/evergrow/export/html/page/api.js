/** The requests of the page, one function each, answered by the model in this page instead of a service. */

import { signOf } from "./accuracy.js";
import * as engine from "./engine.js";
import { conflictOf } from "./lessons.js";
import { Problem } from "./problems.js";
import { state } from "./state.js";
import { sentence } from "./text.js";

export { expectProblem, Problem, Unreachable } from "./problems.js";

const BAD_REQUEST = 400;
const NOT_FOUND = 404;
const CONFLICT = 409;
// As the workspace, which will get the lessons.
const MAX_NAME = 200;
const MAX_BYTES = 100_000_000;
// Names that look the same must be the same; joiners are needed within words of some scripts.
const HIDDEN = new RegExp(
  String.raw`(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}` +
    String.raw`\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\ufdd0-\ufdef\ufffe\uffff]`,
  "u",
);
const THUMBNAIL_SIDE = 240;

/** A new key: of a lesson, so that a workspace learns it once, or of an action, which is one step of undo. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

let nMeasurements = 0;
engine.measured.addEventListener("measured", () => {
  nMeasurements += 1;
});

export async function status() {
  const found = await engine.classes();
  const known = found.filter(({ n }) => n > 0);
  return {
    id: state.page,
    name: engine.settings.name,
    event: state.lessons.event,
    assessed_event: nMeasurements,
    n_classes: known.length,
    n_examples: known.reduce((sum, { n }) => sum + n, 0),
    accuracy: overall(known),
    measured_false_alarms: null,
    scopes: ["read", "teach"],
    // Pictures are asked about one after the other, so that the first answer comes soon.
    max_images: 1,
    max_request_bytes: Infinity,
  };
}

/** The accuracy over all classes. */
function overall(classes) {
  const measured = classes.flatMap(({ accuracy }) => (accuracy === null ? [] : [accuracy]));
  const n = measured.reduce((sum, one) => sum + one.n, 0);
  if (n === 0) return null;
  return { rate: measured.reduce((sum, one) => sum + one.rate * one.n, 0) / n };
}

export async function classes() {
  const found = await engine.classes();
  const entries = found.map(({ name, n, accuracy, confusedWith, confusedShare }, k) => ({
    id: k + 1,
    name,
    n_examples: n,
    n_pictures: state.lessons.withLabel(name).length,
    split: false,
    fine: [],
    sign: signOf(n, accuracy),
    accuracy,
    confused_with: confusedWith,
    confused_share: confusedShare,
    // Not measured here, so that nothing is said about it.
    n_unknown: undefined,
  }));
  return entries.filter((entry) => entry.n_examples > 0);
}

/** The pictures of a class that were taught on this page; the file has no others. */
export async function examples({ label, limit, after }) {
  const all = state.lessons.withLabel(label);
  const first = Number(after ?? 0);
  const items = all.slice(first, first + limit).map(exampleOf);
  return { items, next: first + limit < all.length ? String(first + limit) : null };
}

function exampleOf({ id, event, label, sha256, width, height, at }) {
  return { id, event, label, fine: null, fine_kind: null, fine_probability: null, image: sha256, width, height, at };
}

export const review = async () => ({ items: [] });
export const undoStep = async () => state.lessons.undoStep;

export async function undo(event) {
  if (state.lessons.undoStep.event !== event) throw new Problem(CONFLICT, "There was another change in the meantime.");
  const { n_changes: nChanges, n_examples: nExamples, kind } = state.lessons.undoStep;
  await state.undo();
  return { event, kind: "undo", summary: `undid ${kind}`, n_examples: nExamples, n_changes: nChanges };
}

export const relabel = (id, names) => relabelAll([id], names);

export async function relabelAll(ids, { label }) {
  const name = checkName(label ?? state.lessons.get(ids[0])?.label ?? "");
  return change((lessons) => lessons.relabel(checkIds(ids), name, null, Date.now()));
}

export async function removeAll(ids) {
  return change((lessons) => lessons.remove(checkIds(ids), Date.now()));
}

async function change(decide) {
  const made = await state.change(decide);
  return { event: made.event, kind: made.kind, summary: "", n_examples: made.keys.length, n_changes: 1 };
}

function checkIds(ids) {
  const isGone = ids.some((id) => state.lessons.get(id) === null);
  if (isGone) throw new Problem(NOT_FOUND, "This picture was removed.");
  return ids;
}

function checkName(label) {
  const name = label.normalize("NFC").trim();
  if (name === "" || [...name].length > MAX_NAME) {
    throw new Problem(BAD_REQUEST, `A name has 1 to ${MAX_NAME} characters.`);
  }
  if (HIDDEN.test(name)) throw new Problem(BAD_REQUEST, "A name must not contain hidden characters.");
  return name;
}

export async function teach({ image, label, key, action, move }) {
  const name = checkName(label);
  if (image.size > MAX_BYTES) throw new Problem(BAD_REQUEST, "This picture is larger than 100 MB.");
  const sha256 = await digestOf(image);
  const { embedding, width, height } = await embedded(image);
  let known = null;
  let conflict = null;
  const made = await state.change((lessons) => {
    known = lessons.withPicture(sha256);
    conflict = conflictOf(known, name, move);
    if (conflict === CONFLICT) throw new Problem(CONFLICT, "Another class has this picture.", { label: known.label });
    if (conflict === "duplicate") return null;
    if (conflict === "move") return lessons.relabel([known.id], name, action, Date.now());
    const at = new Date().toISOString();
    return lessons.teach({ key, label: name, image, sha256, embedding, width, height, at }, action, Date.now());
  });
  const lesson = state.lessons.withPicture(sha256);
  const n = (await engine.classes()).find((one) => one.name === name)?.n ?? 0;
  return {
    example: exampleOf(lesson),
    event: (made ?? known).event,
    duplicate: conflict === "duplicate",
    known_fine: null,
    moved_from: conflict === "move" ? known.label : null,
    class: { n_examples: n },
  };
}

/** The predictions for several pictures. */
export async function predict(images, top = 5) {
  const found = await Promise.all(images.map(embedded));
  const answers = await engine.predict(found.map(({ embedding }) => embedding));
  return answers.map((answer) => ({
    label: answer.known ? answer.top[0].name : null,
    probability: answer.top[0].probability,
    known: answer.known,
    novelty: answer.novelty,
    fine: null,
    fine_probability: null,
    top: answer.top.slice(0, top),
    fine_top: [],
  }));
}

async function embedded(image) {
  try {
    return await engine.embed(image);
  } catch (error) {
    throw new Problem(BAD_REQUEST, sentence(error.message));
  }
}

async function digestOf(image) {
  const digest = await crypto.subtle.digest("SHA-256", await image.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function picture(id) {
  return state.lessons.get(checkIds([id])[0]).image;
}

export async function thumbnail(id) {
  const bitmap = await createImageBitmap(await picture(id));
  const scale = Math.min(1, THUMBNAIL_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.85));
}
