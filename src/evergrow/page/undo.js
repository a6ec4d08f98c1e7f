/** Undoes the last step; the button says which one that is. */

import * as api from "./api.js";
import { notify, notifyError } from "./notifications.js";
import { describeStep, undoneText } from "./change_text.js";
import { byId, element, fill, isTyping } from "./dom.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { restorePictures, taughtSteps, withdrawAction } from "./taught_pictures.js";
import { counted, nameMark } from "./text.js";

const CONFLICT = 409;

/** Fires "undone" with the number of the newest change that was undone. */
export const undone = new EventTarget();

let last = null;
let seen = null;
// Counts taught examples, so that an older response does not hide a newer example.
let nTaught = 0;
let undoing = Promise.resolve();

async function refreshUndo() {
  const control = byId("undo");
  control.hidden = !workspace.teaches;
  if (!workspace.teaches || workspace.status === null) return;
  if (seen !== workspace.status.event) {
    const { event: asked } = workspace.status;
    const before = nTaught;
    try {
      const step = await api.undoStep();
      // A slow response about an older state must not replace what a newer one said.
      if (before !== nTaught || workspace.status?.event !== asked) return;
      // A step that taught pictures may have moved some as well.
      const kind = step.labels.length > 0 ? "teach" : step.kind;
      last = step.event === null ? null : { ...step, kind };
      seen = asked;
    } catch (error) {
      api.expectProblem(error);
      return;
    }
  }
  show(control);
}

/** The step of the newest example that was not acknowledged; null if there is none. */
function unsentStep() {
  const { newest } = outbox;
  if (newest === null) return null;
  const { action } = newest;
  const waiting = outbox.ofAction(action);
  const taught = taughtSteps.of(action);
  const kinds = { ...taught?.kinds };
  const labels = new Set(taught?.labels);
  for (const { label, move } of waiting) {
    const kind = move ? "relabel" : "teach";
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    // The class of a picture to be moved is known when the service has answered.
    if (!move) labels.add(label);
  }
  const n = waiting.length + (taught?.events.length ?? 0);
  const nUnsent = outbox.isSending(action) ? 0 : waiting.length;
  const body = newest.move ? moveBody(null, newest.label) : newest;
  return { ...stepOf({ n, kinds, labels: [...labels] }), body, nUnsent };
}

/** A step of changes that this page made, as the service describes it. */
function stepOf({ n, kinds, labels }) {
  return { n_changes: n, n_examples: n, kinds, labels, n_labels: labels.length };
}

function moveBody(from, to) {
  return { from: { label: from }, to: { label: to } };
}

function show(control) {
  const step = unsentStep() ?? last;
  const parts = step === null ? [] : [...describeStep(step), unsentText(step)];
  control.disabled = step === null;
  // On a phone, what it undoes is below the word.
  fill(byId("undo-what"), ...(step === null ? [] : [element("span", { class: "colon" }, ": "), ...parts]));
  control.title = step === null ? "Nothing to undo" : element("span", {}, "Undo: ", ...parts).textContent;
}

function unsentText({ nUnsent = 0, n_examples: n }) {
  if (nUnsent === 0) return "";
  return nUnsent === n ? " (not sent yet)" : ` (${nUnsent} not sent yet)`;
}

/** Pressed twice it undoes two steps, one after the other. */
export function undo() {
  undoing = undoing.then(undoLast);
  return undoing;
}

async function undoLast() {
  if (!workspace.teaches) return;
  const { newest } = outbox;
  const learnt = newest === null || (await withdrawUnsent(newest));
  if (!learnt || last === null) return;
  const step = last;
  try {
    const change = await workspace.change(() => api.undo(step.event));
    restorePictures(step.event);
    undone.dispatchEvent(new CustomEvent("undone", { detail: step.event }));
    notify("good", ...undoneText({ ...step, n_examples: change.n_examples || step.n_examples }));
  } catch (error) {
    if (error instanceof api.Problem && error.status === CONFLICT) {
      notify("bad", "There was another change in the meantime. Check what the button undoes now, and undo again.");
      seen = null;
    } else notifyError(error);
  }
  await refreshUndo();
}

/** Withdraws what was not sent of an action; resolves to whether some of it was learnt. */
async function withdrawUnsent({ action, label }) {
  let { withdrawn, uncertain, arrived } = await withdrawAction(action);
  // The service did not take the one that was being sent: it can be withdrawn, too.
  if (arrived === "delayed" && uncertain.length === 0) ({ withdrawn, uncertain } = await withdrawAction(action));
  if (uncertain.length > 0) {
    const name = nameMark(uncertain[0].label);
    notify("bad", "It is not known yet whether ", name, " was learnt. Undo again when the service is back.");
    return false;
  }
  if (taughtSteps.of(action) !== null) return true;
  if (withdrawn.length > 0) {
    notify("good", "Withdrawn before it was sent: ", counted(withdrawn.length, "picture"), " of ", nameMark(label), ".");
  }
  return false;
}

export function startUndo() {
  byId("undo").addEventListener("click", undo);
  workspace.addEventListener("change", refreshUndo);
  outbox.addEventListener("change", () => show(byId("undo")));
  outbox.addEventListener("taught", ({ detail: { example, answer } }) => {
    const step = taughtSteps.with(answer.event);
    if (answer.duplicate || step === null) return;
    nTaught += 1;
    const body = answer.moved_from === null ? example : moveBody(answer.moved_from, example.label);
    last = { ...stepOf({ ...step, n: step.events.length }), event: answer.event, body };
    show(byId("undo"));
  });
  document.addEventListener("keydown", (event) => {
    const combined = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!combined || event.key.toLowerCase() !== "z" || isTyping(event.target)) return;
    event.preventDefault();
    undo();
  });
}
