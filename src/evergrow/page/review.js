/** The view to check pictures quickly, with the keyboard or by touch. */

import * as api from "./api.js";
import { announce } from "./notifications.js";
import { agreeOnName } from "./name_check.js";
import { showExamples, showLarge } from "./large_view.js";
import { runChange } from "./changes.js";
import { button, byId, element, fill, named, words } from "./dom.js";
import { counted, nameMark, percent } from "./text.js";
import { workspace } from "./workspace.js";
import { suggest } from "./name_form.js";
import { outbox } from "./outbox.js";
import { keysOf } from "./review_items.js";
import { reviewQueue } from "./review_queue.js";
import { reviewShortcuts } from "./shortcuts.js";
import { teachPicture } from "./taught_pictures.js";
import { pictureOf } from "./thumbnails.js";
import { largeOf } from "./tray.js";
import { undo, undone } from "./undo.js";

let open = false;
let item = null;
let drawn = null;
const keyOfEvent = new Map();

export const reviewView = {
  enter() {
    open = true;
    drawn = null;
    reviewQueue.load();
    show();
  },
  leave() {
    open = false;
  },
};

export function startReview() {
  byId("review-accept").addEventListener("click", accept);
  byId("review-skip").addEventListener("click", skip);
  byId("review-again").addEventListener("click", () => reviewQueue.restart());
  byId("review-naming").addEventListener("submit", (event) => {
    event.preventDefault();
    giveName();
  });
  byId("review-name").addEventListener("input", suggestNames);
  byId("review-name").addEventListener("keydown", (event) => {
    if (event.key === "Escape") byId("review-card").focus();
  });
  reviewQueue.addEventListener("change", show);
  // The number in the navigation is right from the start; while pictures are sent it may lag.
  const load = () => {
    if (open || outbox.waiting === 0) reviewQueue.load();
  };
  workspace.addEventListener("change", load);
  undone.addEventListener("undone", ({ detail: event }) => reviewQueue.again(keyOfEvent.get(event)));
  byId("review-picture").addEventListener("click", () => {
    if (item?.picture) showLarge(item.picture);
    else if (item !== null) showExamples([item.example], 0);
  });
  const ready = () => open && workspace.teaches;
  reviewShortcuts(byId("review-card"), { ready, undo, hasItem: () => item !== null, accept, choose, skip, name: typeName });
}

function typeName() {
  byId("review-name").focus();
}

function show() {
  const { items } = reviewQueue;
  byId("review-count").textContent = items.length > 0 ? String(items.length) : "";
  if (!open) return;
  byId("review-add").hidden = !workspace.teaches;
  // The shown picture stays until it is decided, even if a less certain one arrives.
  item = items.find((one) => one.key === item?.key) ?? items[0] ?? null;
  byId("review-card").hidden = item === null;
  byId("review-empty").hidden = item !== null;
  byId("review-again").hidden = reviewQueue.skipped === 0;
  if (item === null) {
    drawn = null;
    return;
  }
  byId("review-left").textContent = `${counted(items.length, "picture")} to review, least certain first`;
  showQuestion();
  if (drawn !== item.key) showPicture();
}

function showQuestion() {
  byId("review-question").textContent = item.question;
  byId("review-hint").textContent = item.hint;
  byId("review-name-label").textContent = item.newNameLabel;
  fill(byId("review-choices"), ...item.choices.map(choiceItem));
  const { accept: verb, choices, acceptable } = item;
  fill(byId("review-accept-what"), ...(acceptable ? [verb, named(choices[0].name)] : ["Type a name"]));
  const keys = keysOf(item).flatMap(([key, does], i) => [i > 0 ? ", " : "Keys: ", element("kbd", {}, key), ` ${does}`]);
  fill(byId("review-keys"), ...keys);
  // A read-only token sees the questions, but cannot answer them.
  for (const id of ["review-choices", "review-accept", "review-naming", "review-keys"]) byId(id).hidden = !workspace.teaches;
  byId("review-skip-what").textContent = workspace.teaches ? "Skip" : "Next";
  suggestNames();
}

function suggestNames() {
  suggest(byId("review-names"), item?.otherNames() ?? [], byId("review-name").value);
}

function choiceItem({ verb, name, share }, i) {
  const control = button(element("kbd", { "aria-hidden": "true" }, String(i + 1)), () => choose(i), {
    class: i === 0 && item.acceptable ? "choice first" : "choice",
  });
  control.append(words(verb, named(name)), element("span", { class: "share" }, share === null ? "" : percent(share)));
  return element("li", {}, control);
}

async function showPicture() {
  const { key } = item;
  drawn = key;
  byId("review-name").value = "";
  byId("review-card").focus({ preventScroll: true });
  announce([item.question, item.hint, item.acceptable ? `Enter: ${item.accept}${item.choices[0].name}.` : ""].join(" "));
  const { picture, example } = item;
  const shown = picture ? await largeOf(picture) : pictureOf(example, `Picture ${example.id}`);
  if (drawn === key) fill(byId("review-picture"), shown);
}

function accept() {
  if (item.acceptable) choose(0);
  else typeName();
}

function choose(i) {
  if (i < item.choices.length) decide(item.choices[i].names);
}

async function giveName() {
  const name = byId("review-name").value.trim();
  if (name === "" || item === null) return;
  const names = item.newName(name);
  const asked = item;
  const label = names.label === undefined ? null : await agreeOnName(names.label);
  // Cancelled, or another picture is shown by now.
  if (item !== asked || (label === null && names.label !== undefined)) return;
  decide(label === null ? names : { ...names, label });
}

function skip() {
  reviewQueue.skip(item);
}

/** @param {{label?: string, fine?: string}} names the same label again says that it is right */
async function decide(names) {
  const decided = item;
  if (decided.picture) {
    teachPicture({ image: decided.picture.image, ...names, picture: decided.picture });
    return;
  }
  reviewQueue.done(decided);
  let event = null;
  const changed = await runChange(async () => {
    ({ event } = await api.relabel(decided.example.id, names));
  }, decidedText(decided.example, names));
  if (changed) keyOfEvent.set(event, decided.key);
  else reviewQueue.again(decided.key);
}

/** A sentence about a taught picture that was checked. */
function decidedText({ label: taught }, { label = taught, fine }) {
  if (fine) return ["This picture is now ", nameMark(label), " · ", nameMark(fine), "."];
  return label === taught ? ["Kept in ", nameMark(label), "."] : ["Moved to ", nameMark(label), "."];
}
