/** Teaches pictures and reports the outcome. */

import { notify } from "./notifications.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { counted, nameMark } from "./text.js";
import { tray } from "./tray.js";

// Limit on pictures that undo can give back to the tray.
const MAX_REMEMBERED = 100;

const pictureOfKey = new Map();
const pictureOfEvent = new Map();

/** Teaches an image; `picture` is its entry in the tray, which is restored if it is refused. */
export function teachPicture({ image, label, fine = null, picture = null }) {
  if (picture !== null) tray.remove(picture);
  const { key, done } = outbox.add({ image, label, fine });
  if (picture !== null) pictureOfKey.set(key, picture);
  return done;
}

/** Restores the picture of an undone event in the tray. */
export function restorePicture(event) {
  const picture = pictureOfEvent.get(event);
  pictureOfEvent.delete(event);
  if (picture !== undefined) tray.restore(picture);
}

/** Withdraws the newest example that was not sent; resolves to whether there was one. */
export async function withdrawNewest() {
  const example = outbox.newest;
  if (example === null) return false;
  const name = nameMark(example.label);
  if (outbox.uncertain) {
    notify("bad", "It is not known yet whether ", name, " was learnt. Undo again when the service is back.");
  } else if (await outbox.withdrawNewest()) {
    restore(example);
    notify("good", "Withdrawn before it was sent: ", name, ".");
  }
  return true;
}

/** Forgets all pictures: those of one token are not shown to the next. */
export function clearPictures() {
  pictureOfKey.clear();
  pictureOfEvent.clear();
}

function restore({ key }) {
  const picture = pictureOfKey.get(key);
  pictureOfKey.delete(key);
  if (picture !== undefined) tray.restore(picture);
}

/** A warning about pictures that the browser could not store; begins with a space. */
export function storageWarning() {
  return outbox.unstored === 0 ? "" : ` Leave this tab open: the browser could not store ${outbox.unstored} of them.`;
}

outbox.addEventListener("taught", ({ detail: { example, answer } }) => {
  const picture = pictureOfKey.get(example.key);
  pictureOfKey.delete(example.key);
  if (picture !== undefined && !answer.duplicate) remember(answer.event, picture);
  const name = nameMark(example.label);
  const fine = nameMark(answer.example.fine);
  if (answer.known_fine === "taken") notify("good", "Already known as ", name, ", and now also as ", fine, ".");
  else if (answer.known_fine === "kept") notify("kept", "Already known as ", name, ": it stays ", fine, " until someone corrects it.");
  else if (answer.duplicate) notify("kept", "Already known: ", name, " was taught this picture before.");
  else notify("good", "Taught ", name, `: ${counted(answer.class.n_examples, "picture")}.`);
  workspace.refresh();
});

outbox.addEventListener("refused", ({ detail: { example, problem } }) => {
  restore(example);
  notify("bad", "Not taught as ", nameMark(example.label), `: ${problem.message}`);
});

outbox.addEventListener("elsewhere", ({ detail: { example } }) => {
  pictureOfKey.delete(example.key);
  notify("kept", "Another window of this page sent or withdrew ", nameMark(example.label), ".");
  workspace.refresh();
});

outbox.addEventListener("delayed", ({ detail: { reason } }) => {
  const waiting = counted(outbox.waiting, "picture");
  notify("kept", `${reason} ${waiting} stored here, to be sent as soon as possible.${storageWarning()}`);
});

function remember(event, picture) {
  pictureOfEvent.set(event, picture);
  if (pictureOfEvent.size > MAX_REMEMBERED) pictureOfEvent.delete(pictureOfEvent.keys().next().value);
}
