/** Teaches pictures and says what became of them. */

import { note } from "./announce.js";
import { counted, named } from "./dom.js";
import { knowledge } from "./knowledge.js";
import { outbox } from "./outbox.js";
import { tray } from "./tray.js";

// Undo goes back one change at a time; nobody goes back further with the same page open.
const REMEMBERED = 100;

const pictureOfKey = new Map();
const pictureOfEvent = new Map();

/** Teaches an image; `picture` is its place in the tray, to give it back if need be. */
export function teachPicture({ image, label, fine = null, picture = null }) {
  if (picture !== null) tray.remove(picture);
  const lesson = outbox.add({ image, label, fine });
  if (picture !== null) pictureOfKey.set(lesson.key, picture);
  return lesson.done;
}

/** Gives the picture of an undone event back to the tray. */
export function takeBack(event) {
  const picture = pictureOfEvent.get(event);
  pictureOfEvent.delete(event);
  if (picture !== undefined) tray.giveBack(picture);
}

/** Withdraws the newest lesson that was not sent; whether there was one. */
export async function withdrawLast() {
  const lesson = outbox.last;
  if (lesson === null) return false;
  if (outbox.uncertain) {
    note("bad", "Whether ", named(lesson.label), " was learnt is not known yet. Undo again when the service is back.");
  } else if (await outbox.withdrawLast()) {
    giveBack(lesson);
    note("good", "Taken back before it was sent: ", named(lesson.label), ".");
  }
  return true;
}

/** Nothing of what one token taught is given back to the next. */
export function forgetPictures() {
  pictureOfKey.clear();
  pictureOfEvent.clear();
}

function giveBack({ key }) {
  const picture = pictureOfKey.get(key);
  pictureOfKey.delete(key);
  if (picture !== undefined) tray.giveBack(picture);
}

/** What to do about pictures that the browser refused to keep; begins with a space. */
export function warning() {
  return outbox.loose === 0 ? "" : ` Leave this tab open: the browser could not store ${outbox.loose} of them.`;
}

outbox.addEventListener("taught", ({ detail: { lesson, answer } }) => {
  const picture = pictureOfKey.get(lesson.key);
  pictureOfKey.delete(lesson.key);
  if (picture !== undefined && !answer.duplicate) remember(answer.event, picture);
  const name = named(lesson.label);
  if (answer.known_fine === "taken") note("good", "Known already as ", name, ", and ", named(answer.example.fine), " now.");
  else if (answer.known_fine === "kept") note("kept", "Known already as ", name, ": it stays ", named(answer.example.fine), " until someone corrects it.");
  else if (answer.duplicate) note("kept", "Known already: ", name, " was taught this very picture before.");
  else note("good", "Taught ", name, `: ${counted(answer.class.n_examples, "picture")}.`);
  knowledge.refresh();
});

outbox.addEventListener("refused", ({ detail: { lesson, problem } }) => {
  giveBack(lesson);
  note("bad", "Not taught as ", named(lesson.label), `: ${problem.message}`);
});

outbox.addEventListener("elsewhere", ({ detail: { lesson } }) => {
  pictureOfKey.delete(lesson.key);
  note("kept", "Another window of this page sent ", named(lesson.label), " or took it back.");
  knowledge.refresh();
});

outbox.addEventListener("delayed", ({ detail: { reason } }) => {
  const waiting = counted(outbox.waiting, "picture");
  note("kept", `${reason} ${waiting} kept here; sent as soon as the service takes them.${warning()}`);
});

function remember(event, picture) {
  pictureOfEvent.set(event, picture);
  if (pictureOfEvent.size > REMEMBERED) pictureOfEvent.delete(pictureOfEvent.keys().next().value);
}
