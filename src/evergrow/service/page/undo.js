/** Takes back the last change; the button says which one that is. */

import * as api from "./api.js";
import { failed, note } from "./announce.js";
import { byId, counted, fill, isTyping, named } from "./dom.js";
import { knowledge } from "./knowledge.js";
import { outbox } from "./outbox.js";
import { takeBack, withdrawLast } from "./teaching.js";

const CONFLICT = 409;
// What can become of a lesson without a change that this page could take back.
const NOTHING_LEARNT = ["known", "refused", "elsewhere"];

// What the service does on its own is not taken back by people.
const CHANGES = {
  teach: ({ label }) => ["taught ", named(label)],
  relabel: ({ from, to, examples }) =>
    from.label === to.label
      ? ["gave ", pictures(examples), " of ", named(to.label), finer(to, examples)]
      : ["moved ", pictures(examples), " to ", named(to.label)],
  confirm: ({ label, examples }) => ["kept ", pictures(examples), " in ", named(label)],
  remove: ({ label, examples }) => ["removed ", pictures(examples), " of ", named(label)],
  forget: ({ label }) => ["forgot ", named(label)],
  rename: ({ from, to }) => ["renamed ", named(from), " to ", named(to)],
  merge: ({ label, into_label: into }) => ["merged ", named(label), " into ", named(into)],
  split: ({ label }) => ["split ", named(label)],
  unsplit: ({ label }) => ["joined ", named(label)],
};

/** How many examples an event is about; one is not listed. */
function pictures(examples = []) {
  return examples.length < 2 ? "a picture" : counted(examples.length, "picture");
}

function finer({ fine }, examples = []) {
  if (fine === null) return examples.length < 2 ? " no finer name" : " no finer names";
  return examples.length < 2 ? " a finer name" : " finer names";
}

/** Fires "undone" with the number of the change that was taken back. */
export const undone = new EventTarget();

let last = null;
let seen = null;
// Counts the lessons heard of, so that an older list of events does not hide a newer lesson.
let heard = 0;
let undoing = Promise.resolve();

async function refreshUndo() {
  const control = byId("undo");
  control.hidden = !knowledge.teaches;
  if (!knowledge.teaches || knowledge.status === null) return;
  if (seen !== knowledge.status.event) {
    const { event: asked } = knowledge.status;
    const before = heard;
    try {
      const event = await api.newestEvent((one) => one.kind in CHANGES && one.undone_by === null);
      if (before !== heard) return;
      // What was erased cannot come back, and nothing before it can be taken back either.
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
  const waiting = outbox.last;
  const state = outbox.arrival === null ? " (not sent yet)" : "";
  const unsent = waiting && ["taught ", named(waiting.label), state];
  const words = unsent ?? (last && CHANGES[last.kind](last.body));
  control.disabled = !words;
  fill(byId("undo-what"), ...(words ? [": ", ...words] : []));
}

/** Pressed twice it takes back two changes, the second when it is known which that is. */
export function undo() {
  undoing = undoing.then(undoLast);
  return undoing;
}

async function undoLast() {
  if (!knowledge.teaches) return;
  // What is on its way may be learnt already: only its answer says what there is to take back.
  const arrived = await outbox.arrival;
  if (NOTHING_LEARNT.includes(arrived) || (await withdrawLast()) || last === null) return;
  const { seq, kind, body } = last;
  try {
    await api.undo(seq);
    takeBack(seq);
    undone.dispatchEvent(new CustomEvent("undone", { detail: seq }));
    note("good", "Undone: ", ...CHANGES[kind](body), ".");
  } catch (error) {
    if (error instanceof api.Problem && error.status === CONFLICT) {
      note("bad", "Something else was changed meanwhile. Look at what would be undone now, and undo again.");
      seen = null;
    } else failed(error);
  }
  await knowledge.refresh();
  await refreshUndo();
}

export function startUndo() {
  byId("undo").addEventListener("click", undo);
  knowledge.addEventListener("change", refreshUndo);
  outbox.addEventListener("change", () => show(byId("undo")));
  outbox.addEventListener("taught", ({ detail: { lesson, answer } }) => {
    if (answer.duplicate) return;
    heard += 1;
    last = { seq: answer.event, kind: "teach", body: lesson };
    show(byId("undo"));
  });
  document.addEventListener("keydown", (event) => {
    const combined = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!combined || event.key.toLowerCase() !== "z" || isTyping(event.target)) return;
    event.preventDefault();
    undo();
  });
}
