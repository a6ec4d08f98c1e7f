/** The form with the name of a picture, and the progress of that class. */

import { byId, element, fill, named } from "./dom.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { advice, countText, FIRST_PICTURES } from "./class_advice.js";
import { badge, dots } from "./class_progress.js";

// A longer list is hard to read; typing makes it shorter.
const MAX_SUGGESTIONS = 50;

const field = byId("label");
const finer = byId("fine");

export function startNameForm() {
  field.addEventListener("input", showNameForm);
  finer.addEventListener("input", () => suggest(byId("fines"), fineNames(), finer.value));
  workspace.addEventListener("change", showNameForm);
  outbox.addEventListener("change", showNameForm);
}

/** The names that were typed; null, with a message, if one is missing. */
export function typedNames() {
  const label = field.value.trim();
  const missing = label === "";
  field.setAttribute("aria-invalid", String(missing));
  byId("label-missing").hidden = !missing;
  if (missing) {
    field.focus();
    return null;
  }
  return { label, fine: finer.value.trim() || null };
}

export function setName(label) {
  field.value = label;
  finer.value = "";
  showNameForm();
}

/** Focuses the name, for a picture of none of the predicted classes. */
export function focusName() {
  field.focus();
  field.select();
}

export function showNameForm() {
  const label = field.value.trim();
  if (label !== "") {
    field.setAttribute("aria-invalid", "false");
    byId("label-missing").hidden = true;
  }
  suggest(byId("names"), workspace.classes.map((entry) => entry.name), label);
  suggest(byId("fines"), fineNames(), finer.value);
  fill(byId("progress"), ...progressOf(label));
}

function progressOf(label) {
  if (label === "") return [];
  const entry = workspace.named(label);
  const waiting = outbox.waitingFor(label);
  if (entry === null) {
    const queued = waiting > 0 ? `${waiting} waiting to be sent. ` : "";
    return [
      element("p", { class: "row" }, element("span", { class: "badge new" }, "New class"), dots(waiting)),
      element("p", { class: "muted" }, queued, `Show about ${FIRST_PICTURES} of `, named(label), " from different sides."),
    ];
  }
  return [
    element("p", { class: "row" }, badge(entry), dots(entry.n_examples), countText(entry, waiting)),
    element("p", { class: "muted" }, ...advice(entry)),
  ];
}

function fineNames() {
  return workspace.named(field.value.trim())?.fine.map((entry) => entry.name) ?? [];
}

/** Fills a list with the names that contain the typed text. */
export function suggest(list, names, typed) {
  const begun = typed.trim().toLowerCase();
  const fitting = names.filter((name) => name.toLowerCase().includes(begun)).slice(0, MAX_SUGGESTIONS);
  fill(list, ...fitting.map((name) => element("option", { value: name })));
}
