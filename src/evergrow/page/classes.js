/** The view of all classes. */

import * as api from "./api.js";
import { byId, element, named, showList } from "./dom.js";
import { isolated } from "./text.js";
import { workspace } from "./workspace.js";
import { advice, countText, intervalText, sumText } from "./class_advice.js";
import { accuracyBar, badge } from "./class_progress.js";
import { thumbnailOf } from "./thumbnails.js";

const PAGE_SIZE = 60;
const N_COVERS = 3;

let most = PAGE_SIZE;
let open = false;
const covers = new Map();

export const classesView = {
  enter() {
    open = true;
    show();
  },
  leave() {
    open = false;
  },
};

/** Forgets the covers: those of one token are not shown to the next. */
export function clearCovers() {
  covers.clear();
}

export function startClasses() {
  byId("class-filter").addEventListener("input", () => {
    most = PAGE_SIZE;
    show();
  });
  byId("classes-more").addEventListener("click", () => {
    most += PAGE_SIZE;
    show();
  });
  workspace.addEventListener("change", show);
}

function show() {
  if (!open) return;
  const part = byId("class-filter").value.trim().toLowerCase();
  const fitting = workspace.classes.filter((entry) => entry.name.toLowerCase().includes(part));
  const items = fitting.slice(0, most).map((entry) => ({ key: entry.id, state: entry, entry }));
  showList(byId("class-cards"), items, cardOf);
  byId("classes-more").hidden = fitting.length <= most;
  byId("classes-none").hidden = fitting.length > 0;
  const none = workspace.empty ? "Nothing has been taught yet." : "No class has a matching name.";
  byId("classes-none").textContent = none;
  byId("classes-sum").textContent = sum();
}

function sum() {
  const { status } = workspace;
  return status === null || workspace.empty ? "" : sumText(status, workspace.classes);
}

function cardOf({ entry }) {
  const place = element("span", { class: "covers" });
  showCovers(place, entry);
  const link = element("a", { href: `#class/${entry.id}`, class: "class-card card" }, place);
  const sure = entry.accuracy === null ? null : intervalText(entry.accuracy);
  link.append(
    element("strong", {}, named(entry.name)),
    element("span", { class: "row" }, badge(entry), element("span", { class: "muted" }, countText(entry))),
    element("span", { class: "muted small", title: sure }, ...advice(entry, workspace.classes.length === 1)),
  );
  const bar = accuracyBar(entry);
  if (bar !== null) link.append(bar);
  const kinds = entry.fine.map((kind) => element("span", { class: "chip" }, named(kind.name)));
  if (kinds.length > 0) link.append(element("span", { class: "row" }, ...kinds));
  return element("li", {}, link);
}

/** Shows the first pictures of a class; they are loaded again only when their number changes. */
async function showCovers(place, entry) {
  const { id, name, n_examples: n } = entry;
  const known = covers.get(id);
  try {
    const { items } = known?.n === n ? known : await api.examples({ label: name, limit: N_COVERS });
    covers.set(id, { n, items });
    const describe = (example) => `Picture ${example.id} of ${isolated(name)}`;
    place.append(...items.map((example) => thumbnailOf(example, describe(example))));
  } catch (error) {
    api.expectProblem(error);
  }
}
