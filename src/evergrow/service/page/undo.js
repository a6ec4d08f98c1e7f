/** Undoes the last change; the button says which one that is. */

import * as api from "./api.js";
import { notify, notifyError } from "./notifications.js";
import { describeChange, isUndoable } from "./change_text.js";
import { byId, fill, isTyping } from "./dom.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { restorePicture, withdrawNewest } from "./taught_pictures.js";

const CONFLICT = 409;
// Outcomes of an example after which this page has no change to undo.
const NOTHING_LEARNT = ["known", "refused", "elsewhere"];

/** Fires "undone" with the number of the change that was undone. */
export const undone = new EventTarget();

let last = null;
let seen = null;
// Counts taught examples, so that an older list of events does not hide a newer example.
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
      const event = await api.newestEvent(isUndoable);
      // A slow response about an older state must not replace what a newer one said.
      if (before !== nTaught || workspace.status?.event !== asked) return;
      // An erased class cannot be restored, and nothing before it can be undone either.
      last = event?.body.erase ? null : event;
      seen = asked;
    } catch (error) {
      api.expectProblem(error);
      return;
    }
  }
  show(control);
}

function show(control) {
  const waiting = outbox.newest;
  const state = outbox.arrival === null ? " (not sent yet)" : "";
  const unsent = waiting && [...describeChange({ kind: "teach", body: waiting }), state];
  const parts = unsent ?? (last && describeChange(last));
  control.disabled = !parts;
  fill(byId("undo-what"), ...(parts ? [": ", ...parts] : []));
}

/** Pressed twice it undoes two changes, one after the other. */
export function undo() {
  undoing = undoing.then(undoLast);
  return undoing;
}

async function undoLast() {
  if (!workspace.teaches) return;
  // An example that is being sent may be learnt already: wait for the response.
  const arrived = await outbox.arrival;
  if (NOTHING_LEARNT.includes(arrived) || (await withdrawNewest()) || last === null) return;
  const change = last;
  const { seq } = change;
  try {
    await workspace.change(() => api.undo(seq));
    restorePicture(seq);
    undone.dispatchEvent(new CustomEvent("undone", { detail: seq }));
    notify("good", "Undone: ", ...describeChange(change), ".");
  } catch (error) {
    if (error instanceof api.Problem && error.status === CONFLICT) {
      notify("bad", "There was another change in the meantime. Check what the button undoes now, and undo again.");
      seen = null;
    } else notifyError(error);
  }
  await refreshUndo();
}

export function startUndo() {
  byId("undo").addEventListener("click", undo);
  workspace.addEventListener("change", refreshUndo);
  outbox.addEventListener("change", () => show(byId("undo")));
  outbox.addEventListener("taught", ({ detail: { example, answer } }) => {
    if (answer.duplicate) return;
    nTaught += 1;
    last = { seq: answer.event, kind: "teach", body: example };
    show(byId("undo"));
  });
  document.addEventListener("keydown", (event) => {
    const combined = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!combined || event.key.toLowerCase() !== "z" || isTyping(event.target)) return;
    event.preventDefault();
    undo();
  });
}
