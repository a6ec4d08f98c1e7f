/** The form with the name of a picture, and the progress of that class. */

import { byId, element, fill, named } from "./dom.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { advice, countText, FIRST_PICTURES } from "./class_advice.js";
import { badge, dots } from "./class_progress.js";

// A longer list is hard to read; typing makes it shorter.
const MAX_SUGGESTIONS = 50;

const field = byId("label");
const kind = byId("kind");

/** Fires "change" when the name changes. */
export const nameForm = new EventTarget();

export function startNameForm() {
  field.addEventListener("input", nameChanged);
  kind.addEventListener("input", () => suggest(byId("kind-names"), kindNames(), kind.value));
  byId("add-kind").addEventListener("click", () => {
    byId("kind-field").hidden = false;
    showNameForm();
    kind.focus();
  });
  workspace.addEventListener("change", showNameForm);
  outbox.addEventListener("change", showNameForm);
}

function nameChanged() {
  showNameForm();
  nameForm.dispatchEvent(new Event("change"));
}

/** The name as it is typed now; may be empty. */
export function typedLabel() {
  return field.value.trim();
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
  return { label, fine: kind.value.trim() || null };
}

export function setName(label) {
  field.value = label;
  kind.value = "";
  byId("kind-field").hidden = true;
  nameChanged();
}

export function showNameForm() {
  const label = field.value.trim();
  if (label !== "") {
    field.setAttribute("aria-invalid", "false");
    byId("label-missing").hidden = true;
  }
  suggest(byId("names"), workspace.classes.map((entry) => entry.name), label);
  suggest(byId("kind-names"), kindNames(), kind.value);
  // Newcomers name a first thing; kinds of it come later.
  byId("add-kind").hidden = workspace.empty || !byId("kind-field").hidden;
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
    element("p", { class: "muted" }, ...advice(entry, workspace.classes.length === 1)),
  ];
}

function kindNames() {
  return workspace.named(field.value.trim())?.fine.map((entry) => entry.name) ?? [];
}

/** Fills a list with the names that contain the typed text. */
export function suggest(list, names, typed) {
  const begun = typed.trim().toLowerCase();
  const fitting = names.filter((name) => name.toLowerCase().includes(begun)).slice(0, MAX_SUGGESTIONS);
  fill(list, ...fitting.map((name) => element("option", { value: name })));
}
