/** The view of one class: its pictures, its kinds, and the actions on them. */

import * as api from "./api.js";
import { ask } from "./dialogs.js";
import { runChange, forgetClass, joinClass, mergeClass, renameClass, splitClass } from "./changes.js";
import { connection } from "./connection.js";
import { byId, button, element, fill, named, showList } from "./dom.js";
import { counted, isolated, percent } from "./text.js";
import { workspace } from "./workspace.js";
import { advice, countText } from "./class_advice.js";
import { badge } from "./class_progress.js";
import { thumbnailOf } from "./thumbnails.js";

const PAGE_SIZE = 48;
// The service changes at most this many in one request.
const MAX_CHOSEN = 500;

let id = null;
let examples = [];
let next = null;
let nLoads = 0;
let seen = null;
const chosen = new Set();

export const classPage = {
  enter(which) {
    id = Number(which);
    examples = [];
    next = null;
    seen = null;
    chosen.clear();
    // Pictures of another class must not be shown, or chosen, while the new ones load.
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

/** Leaves the view of a class that no longer exists. */
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
    ? "Split: the model tells these kinds apart, and gives only the class when it is not certain."
    : "Not split yet: the model does not tell these kinds apart.";
}

/** Loads the first pictures, or the next page. */
async function load(after, more = PAGE_SIZE) {
  const entry = current();
  const loadNumber = (nLoads += 1);
  seen = workspace.version;
  const limit = after === null ? Math.min(MAX_CHOSEN, Math.max(PAGE_SIZE, examples.length)) : more;
  byId("class-problem").textContent = "";
  try {
    const page = await api.examples({ label: entry.name, limit, after });
    if (loadNumber !== nLoads || id !== entry.id) return;
    examples = after === null ? page.items : [...examples, ...page.items];
    next = page.next;
  } catch (error) {
    api.expectProblem(error);
    if (loadNumber !== nLoads) return;
    // The page stays as it is; the next change loads again.
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

/** Chooses all pictures of the class, also those not loaded yet, up to the limit of one change. */
async function chooseAll() {
  while (next !== null && examples.length < MAX_CHOSEN) {
    const before = examples.length;
    await load(next, MAX_CHOSEN);
    if (examples.length === before) break;
  }
  for (const example of examples.slice(0, MAX_CHOSEN)) chosen.add(example.id);
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
    if (box.checked && chosen.size < MAX_CHOSEN) chosen.add(example.id);
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
  return runChange(() => api.relabel(example.id, { fine: example.fine }));
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
    text: [`${counted(chosen.size, "picture")} chosen. To which class do they belong?`],
    fields: [{ name: "label", label: "Class, known or new" }],
    accept: "Move",
  });
  if (answer !== null) await forChosen((examples) => api.relabelAll(examples, { label: answer.label }));
}

/** Makes one change for all chosen pictures, with one undo. */
async function forChosen(change) {
  const examples = [...chosen];
  if (!(await runChange(() => change(examples)))) return;
  chosen.clear();
  byId("chosen-fine").value = "";
  showPictures();
  // The form that had the focus is hidden now.
  byId("class-title").focus();
}
