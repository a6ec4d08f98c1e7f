/** Teaches pictures and reports the outcome. */

import { newKey } from "./api.js";
import { taughtText } from "./change_text.js";
import { ask } from "./dialogs.js";
import { notify } from "./notifications.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { TaughtSteps } from "./taught_steps.js";
import { counted, isolated, nameMark } from "./text.js";
import { tray } from "./tray.js";

const CONFLICT = 409;
// A picture that is too large, or none at all.
const UNREADABLE = [413, 415];

/** What this page taught, by steps of undo. */
export const taughtSteps = new TaughtSteps();

const pictureOfKey = new Map();
// By action: examples whose picture another class already has, and that class.
const taken = new Map();
// Pictures of the newest action that their class has already.
let known = { action: null, n: 0 };
// Pictures of the newest action that were taught, or moved, to one class.
let learnt = { what: null, n: 0 };
// Says that pictures wait to be sent.
let delayedNote = null;

/**
 * Teaches an image.
 *
 * @param {object} example
 * @param {object|null} example.picture its entry in the tray, which is restored if it is refused
 * @param {string} example.action pictures with the same action are one step of undo
 */
export function teachPicture({ image, label, fine = null, picture = null, action = newKey(), move = false }) {
  if (picture !== null) tray.remove(picture);
  const { key, done } = outbox.add({ image, label, fine, action, move });
  if (picture !== null) pictureOfKey.set(key, picture);
  return done;
}

/** Restores the pictures of an undone step in the tray. */
export function restorePictures(event) {
  const step = taughtSteps.with(event);
  if (step === null) return;
  taughtSteps.remove(step);
  tray.restore(step.pictures);
}

/** Withdraws the examples of an action that were not sent; as the outbox does. */
export async function withdrawAction(action) {
  const found = await outbox.withdraw(action);
  for (const example of found.withdrawn) restore(example);
  askAboutTaken();
  return found;
}

/** Forgets all pictures: those of one token are not shown to the next. */
export function clearPictures() {
  pictureOfKey.clear();
  taughtSteps.clear();
  taken.clear();
}

function restore({ key }) {
  const picture = pictureOfKey.get(key);
  pictureOfKey.delete(key);
  if (picture !== undefined) tray.restore([picture]);
}

/** A warning about pictures that the browser could not store; begins with a space. */
export function storageWarning() {
  return outbox.unstored === 0 ? "" : ` Leave this tab open: the browser could not store ${outbox.unstored} of them.`;
}

outbox.addEventListener("taught", ({ detail: { example, answer } }) => {
  const picture = pictureOfKey.get(example.key);
  pictureOfKey.delete(example.key);
  const { label } = example;
  if (!answer.duplicate) taughtSteps.add(example.action, answer.event, { label, picture, movedFrom: answer.moved_from });
  const isKnown = answer.duplicate && answer.known_fine !== "taken";
  if (isKnown) known = { action: example.action, n: example.action === known.action ? known.n + 1 : 1 };
  const many = isKnown && known.n > 1;
  notify(isKnown ? "kept" : "good", ...(many ? [`${known.n} of these pictures were taught already.`] : outcomeText(example, answer)));
  if (outbox.waiting === 0) delayedNote?.remove();
  askAboutTaken();
  workspace.refresh();
});

function outcomeText({ action, label }, { duplicate, known_fine: knownFine, moved_from: from, example, class: { n_examples: total } }) {
  const name = nameMark(label);
  if (knownFine === "taken") return ["This picture was already ", name, ". Its kind is now ", nameMark(example.fine), "."];
  if (knownFine === "kept") return ["This picture is already ", name, " · ", nameMark(example.fine), "."];
  if (duplicate) return ["This picture is already ", name, "."];
  const moved = from !== null;
  const what = JSON.stringify([action, label, moved]);
  learnt = { what, n: what === learnt.what ? learnt.n + 1 : 1 };
  return taughtText({ label, n: learnt.n, total, moved });
}

outbox.addEventListener("refused", ({ detail: { example, problem } }) => {
  if (problem.status === CONFLICT && problem.label !== null) {
    taken.set(example.action, [...(taken.get(example.action) ?? []), { example, label: problem.label }]);
    askAboutTaken();
    return;
  }
  const { name } = pictureOfKey.get(example.key) ?? example.image ?? {};
  // Another name would not help.
  if (UNREADABLE.includes(problem.status)) pictureOfKey.delete(example.key);
  else restore(example);
  notify("bad", ...(name ? [isolated(name), ": not"] : ["Not"]), " taught as ", nameMark(example.label), `. ${problem.message}`);
});

/** Asks once per action, when the rest of it has been sent. */
function askAboutTaken() {
  for (const [action, found] of taken) {
    if (outbox.ofAction(action).length > 0) continue;
    taken.delete(action);
    askToMove(found);
  }
}

async function askToMove(found) {
  const answer = await ask({
    title: "Already taught",
    text: moveQuestion(found),
    accept: found.length === 1 ? "Move it" : "Move them",
    refuse: found.length === 1 ? "Leave it" : "Leave them",
    unexpected: true,
  });
  for (const { example } of found) {
    const picture = pictureOfKey.get(example.key) ?? null;
    pictureOfKey.delete(example.key);
    if (answer !== null) teachPicture({ ...example, picture, move: true });
  }
}

function moveQuestion(found) {
  const labels = [...new Set(found.map(({ label }) => label))];
  const targets = [...new Set(found.map(({ example }) => example.label))];
  const now = labels.flatMap((label, i) => [i > 0 ? ", " : "", nameMark(label)]);
  const target = targets.length === 1 ? [nameMark(targets[0])] : ["their new classes"];
  if (found.length === 1) return ["This picture is already ", ...now, ". Move it to ", ...target, "?"];
  return [`${found.length} of these pictures are already taught (`, ...now, "). Move them to ", ...target, "?"];
}

outbox.addEventListener("elsewhere", ({ detail: { example } }) => {
  pictureOfKey.delete(example.key);
  notify("kept", "Another window of this page sent or withdrew ", nameMark(example.label), ".");
  askAboutTaken();
  workspace.refresh();
});

outbox.addEventListener("delayed", ({ detail: { reason } }) => {
  const waiting = counted(outbox.waiting, "picture");
  delayedNote = notify("kept", `${reason} ${waiting} stored here, to be sent as soon as possible.${storageWarning()}`);
});
