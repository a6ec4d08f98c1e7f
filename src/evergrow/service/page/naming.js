/** The form that gives a picture its name, and says how much of that class was taught. */

import { byId, element, fill, named } from "./dom.js";
import { knowledge } from "./knowledge.js";
import { outbox } from "./outbox.js";
import { badge, count, dots, FIRST_PICTURES, verdict } from "./signs.js";

// A longer list is not read anyway; typing makes it shorter.
const MOST_SUGGESTIONS = 50;

const field = byId("label");
const finer = byId("fine");

export function startNaming() {
  field.addEventListener("input", showNaming);
  finer.addEventListener("input", () => suggest(byId("fines"), fineNames(), finer.value));
  knowledge.addEventListener("change", showNaming);
  outbox.addEventListener("change", showNaming);
}

/** The names that were typed, or null after saying what is missing. */
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

export function typeName(label) {
  field.value = label;
  finer.value = "";
  showNaming();
}

/** Brings the cursor to the name, for a picture that is none of what was offered. */
export function askForName() {
  field.focus();
  field.select();
}

export function showNaming() {
  const label = field.value.trim();
  if (label !== "") {
    field.setAttribute("aria-invalid", "false");
    byId("label-missing").hidden = true;
  }
  suggest(byId("names"), knowledge.classes.map((entry) => entry.name), label);
  suggest(byId("fines"), fineNames(), finer.value);
  fill(byId("progress"), ...progressOf(label));
}

function progressOf(label) {
  if (label === "") return [];
  const entry = knowledge.named(label);
  const waiting = outbox.waitingFor(label);
  if (entry === null) {
    const kept = waiting > 0 ? `${waiting} waiting to be sent. ` : "";
    return [
      element("p", { class: "row" }, element("span", { class: "badge new" }, "New class"), dots(waiting)),
      element("p", { class: "muted" }, kept, `Show about ${FIRST_PICTURES} of `, named(label), " from different sides."),
    ];
  }
  return [
    element("p", { class: "row" }, badge(entry), dots(entry.n_examples), count(entry, waiting)),
    element("p", { class: "muted" }, ...verdict(entry)),
  ];
}

function fineNames() {
  return knowledge.named(field.value.trim())?.fine.map((entry) => entry.name) ?? [];
}

/** Fills a list with the names that contain what was typed. */
export function suggest(list, names, typed) {
  const begun = typed.trim().toLowerCase();
  const fitting = names.filter((name) => name.toLowerCase().includes(begun)).slice(0, MOST_SUGGESTIONS);
  fill(list, ...fitting.map((name) => element("option", { value: name })));
}
