/** One class: its pictures, its finer names, and everything that can be done with it. */

import * as api from "./api.js";
import { ask } from "./dialogs.js";
import { doing, forgetClass, joinClass, mergeClass, renameClass, splitClass } from "./changes.js";
import { connection } from "./connection.js";
import { byId, button, element, fill, named, showList } from "./dom.js";
import { counted, isolated, percent } from "./text.js";
import { workspace } from "./workspace.js";
import { advice, countText } from "./class_advice.js";
import { badge } from "./class_progress.js";
import { thumbnailOf } from "./thumbnails.js";

const PAGE = 48;
// As many as the service changes at once.
const MOST_CHOSEN = 500;

let id = null;
let examples = [];
let next = null;
let asked = 0;
let seen = null;
const chosen = new Set();

export const classPage = {
  enter(which) {
    id = Number(which);
    examples = [];
    next = null;
    seen = null;
    chosen.clear();
    // Nothing of another class may be seen, or chosen, while its own pictures are on their way.
    showPictures();
    show();
  },
  leave() {
    id = null;
  },
};

export function startClassPage() {
  const act = (work) => () => work(current());
  byId("class-rename").addEventListener("click", act(renameClass));
  byId("class-merge").addEventListener("click", act(async (entry) => leaveIf(await mergeClass(entry))));
  byId("class-split").addEventListener("click", act(splitClass));
  byId("class-join").addEventListener("click", act(joinClass));
  byId("class-forget").addEventListener("click", act(async (entry) => leaveIf(await forgetClass(entry))));
  byId("class-more").addEventListener("click", () => load(next));
  byId("chosen-form").addEventListener("submit", (event) => {
    event.preventDefault();
    giveFiner();
  });
  byId("chosen-move").addEventListener("click", moveChosen);
  byId("chosen-remove").addEventListener("click", () => forChosen(api.removeAll));
  byId("choose-all").addEventListener("click", chooseAll);
  byId("chosen-none").addEventListener("click", () => {
    chosen.clear();
    showPictures();
    byId("class-title").focus();
  });
  workspace.addEventListener("change", show);
  connection.addEventListener("change", () => {
    if (connection.online) show();
  });
}

/** A class that is gone has no page. */
function leaveIf(gone) {
  if (gone) location.hash = "#classes";
}

function current() {
  return workspace.classes.find((entry) => entry.id === id) ?? null;
}

function show() {
  if (id === null || workspace.status === null) return;
  const entry = current();
  byId("class-gone").hidden = entry !== null;
  byId("class-body").hidden = entry === null;
  fill(byId("class-title"), entry === null ? "Class" : named(entry.name));
  if (entry === null) return;
  fill(byId("class-sign"), badge(entry), " ", countText(entry), ". ", ...advice(entry));
  byId("class-tools").hidden = !workspace.teaches;
  byId("class-split").hidden = entry.split;
  byId("class-join").hidden = !entry.split;
  showKinds(entry);
  showChosen();
  if (seen !== workspace.version) load(null);
}

function showKinds({ fine, split }) {
  byId("kinds").hidden = fine.length === 0;
  const items = fine.map((kind) => ({ key: kind.id, state: kind, kind }));
  showList(byId("kind-list"), items, ({ kind }) => {
    const guesses = kind.n_guessed > 0 ? `, ${counted(kind.n_guessed, "guess", "guesses")} to confirm` : "";
    return element("li", { class: "chip" }, named(kind.name), ` ${kind.n_given}${guesses}`);
  });
  byId("kinds-note").textContent = split
    ? "Split: the model tells these kinds apart, and says only the class when it is unsure."
    : "Not split yet: the model does not tell these kinds apart.";
}

/** Loads the first pictures again, or the ones that follow. */
async function load(after, more = PAGE) {
  const entry = current();
  const turn = (asked += 1);
  seen = workspace.version;
  const limit = after === null ? Math.min(MOST_CHOSEN, Math.max(PAGE, examples.length)) : more;
  byId("class-problem").textContent = "";
  try {
    const page = await api.examples({ label: entry.name, limit, after });
    if (turn !== asked || id !== entry.id) return;
    examples = after === null ? page.items : [...examples, ...page.items];
    next = page.next;
  } catch (error) {
    api.expectProblem(error);
    if (turn !== asked) return;
    // What is on the page stays; the next change asks again.
    seen = null;
    byId("class-problem").textContent = `The pictures cannot be loaded now. ${error.message}`;
    return;
  }
  showPictures();
}

function showPictures() {
  const there = new Set(examples.map((example) => example.id));
  for (const example of chosen) if (!there.has(example)) chosen.delete(example);
  const { teaches } = workspace;
  const items = examples.map((example) => {
    return { key: example.id, state: [example, chosen.has(example.id), teaches], example };
  });
  showList(byId("class-pictures"), items, tileOf);
  byId("class-more").hidden = next === null;
  byId("choose-all").hidden = !teaches || examples.length < 2;
  showChosen();
}

/** Chooses every picture of the class, also those that are not shown yet, as far as one change goes. */
async function chooseAll() {
  while (next !== null && examples.length < MOST_CHOSEN) {
    const before = examples.length;
    await load(next, MOST_CHOSEN);
    if (examples.length === before) break;
  }
  for (const example of examples.slice(0, MOST_CHOSEN)) chosen.add(example.id);
  showPictures();
}

function tileOf({ example }) {
  const description = `Picture ${example.id} of ${isolated(example.label)}`;
  const image = thumbnailOf(example, description);
  const caption = captionOf(example);
  if (!workspace.teaches) return element("li", {}, element("span", { class: "tile" }, image, ...caption));
  const checked = chosen.has(example.id);
  const box = element("input", { type: "checkbox", checked, "aria-label": `Choose ${description}` });
  box.addEventListener("change", () => {
    if (box.checked && chosen.size < MOST_CHOSEN) chosen.add(example.id);
    else chosen.delete(example.id);
    box.checked = chosen.has(example.id);
    showChosen();
  });
  const item = element("li", {}, element("label", { class: "tile" }, box, image, ...caption));
  if (example.fine_kind === "guessed") {
    const words = `Yes, it is ${isolated(example.fine)}`;
    item.append(button("Confirm", () => confirm(example), { class: "small", "aria-label": words }));
  }
  return item;
}

function captionOf({ fine, fine_kind: kind, fine_probability: share }) {
  if (fine === null) return [];
  const sure = kind === "guessed" ? `? ${share === null ? "" : percent(share)}` : "";
  return [element("span", { class: kind === "guessed" ? "caption guess" : "caption" }, named(fine), sure)];
}

function confirm(example) {
  return doing(() => api.relabel(example.id, { fine: example.fine }));
}

function showChosen() {
  byId("chosen").hidden = chosen.size === 0;
  byId("chosen-count").textContent = `${counted(chosen.size, "picture")} chosen`;
  const names = current()?.fine.map((kind) => kind.name) ?? [];
  fill(byId("kind-names"), ...names.map((name) => element("option", { value: name })));
}

async function giveFiner() {
  const fine = byId("chosen-fine").value.trim();
  if (fine !== "") await forChosen((examples) => api.relabelAll(examples, { fine }));
}

async function moveChosen() {
  const answer = await ask({
    title: "Move to another class",
    text: [`${counted(chosen.size, "picture")} chosen. Which class shows them?`],
    fields: [{ name: "label", label: "Class, known or new" }],
    accept: "Move",
  });
  if (answer !== null) await forChosen((examples) => api.relabelAll(examples, { label: answer.label }));
}

/** One change for all of them, which is undone at once. */
async function forChosen(change) {
  const examples = [...chosen];
  if (!(await doing(() => change(examples)))) return;
  chosen.clear();
  byId("chosen-fine").value = "";
  showPictures();
  // The form that had the focus is gone.
  byId("class-title").focus();
}
