/** The view to check pictures quickly, with the keyboard or by touch. */

import * as api from "./api.js";
import { announce } from "./notifications.js";
import { runChange } from "./changes.js";
import { button, byId, element, fill, named } from "./dom.js";
import { counted, percent } from "./text.js";
import { workspace } from "./workspace.js";
import { suggest } from "./name_form.js";
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
  workspace.addEventListener("change", () => {
    if (open) reviewQueue.load();
  });
  undone.addEventListener("undone", ({ detail: event }) => reviewQueue.again(keyOfEvent.get(event)));
  const ready = () => open && item !== null && workspace.teaches;
  const name = () => byId("review-name").focus();
  reviewShortcuts(byId("review-card"), { ready, accept, choose, skip, undo, name });
}

function show() {
  const { items } = reviewQueue;
  byId("review-count").textContent = items.length > 0 ? String(items.length) : "";
  if (!open) return;
  // The shown picture stays until it is decided, even if a less certain one arrives.
  item = items.find((one) => one.key === item?.key) ?? items[0] ?? null;
  byId("review-card").hidden = item === null;
  byId("review-empty").hidden = item !== null;
  byId("review-again").hidden = reviewQueue.skipped === 0;
  if (item === null) {
    drawn = null;
    return;
  }
  byId("review-left").textContent = `${counted(items.length, "picture")} to check, least certain first`;
  showQuestion();
  if (drawn !== item.key) showPicture();
}

function showQuestion() {
  byId("review-question").textContent = item.question;
  byId("review-hint").textContent = item.hint;
  byId("review-name-label").textContent = item.newNameLabel;
  fill(byId("review-choices"), ...item.choices.map(choiceItem));
  const { accept: verb, choices, acceptable } = item;
  fill(byId("review-accept-what"), ...(acceptable ? [verb, named(choices[0].name)] : ["Accept"]));
  byId("review-accept").disabled = !acceptable || !workspace.teaches;
  byId("review-naming").hidden = !workspace.teaches;
  suggestNames();
}

function suggestNames() {
  suggest(byId("review-names"), item?.otherNames() ?? [], byId("review-name").value);
}

function choiceItem({ verb, name, share }, i) {
  const control = button(element("kbd", { "aria-hidden": "true" }, String(i + 1)), () => choose(i), {
    class: i === 0 && item.acceptable ? "choice first" : "choice",
    disabled: !workspace.teaches,
  });
  control.append(element("span", {}, verb, named(name)), element("span", { class: "share" }, share === null ? "" : percent(share)));
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
  else byId("review-name").focus();
}

function choose(i) {
  if (i < item.choices.length) decide(item.choices[i].names);
}

function giveName() {
  const name = byId("review-name").value.trim();
  if (name !== "" && item !== null) decide(item.newName(name));
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
    const change = await api.relabel(decided.example.id, names);
    ({ event } = change);
    return change;
  });
  if (changed) keyOfEvent.set(event, decided.key);
  else reviewQueue.again(decided.key);
}
