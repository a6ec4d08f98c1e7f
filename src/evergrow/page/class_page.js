/** The view of one class: its pictures, its kinds, and the actions on them. */

import * as api from "./api.js";
import { ask } from "./dialogs.js";
import { runChange, forgetClass, joinClass, mergeClass, renameClass, splitClass } from "./changes.js";
import { connection } from "./connection.js";
import { byId, button, element, fill, named, showList } from "./dom.js";
import { showExamples } from "./large_view.js";
import { agreeOnName } from "./name_check.js";
import { counted, isolated, nameMark, percent } from "./text.js";
import { workspace } from "./workspace.js";
import { advice, countText, intervalText } from "./class_advice.js";
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

/** The name of the class that is shown, or null. */
export function shownClass() {
  return current()?.name ?? null;
}

export function startClassPage() {
  const act = (work) => () => work(current());
  byId("class-rename").addEventListener("click", act(async (entry) => leaveIf(await renameClass(entry))));
  byId("class-merge").addEventListener("click", act(async (entry) => leaveIf(await mergeClass(entry))));
  byId("class-split").addEventListener("click", act(splitClass));
  byId("class-join").addEventListener("click", act(joinClass));
  byId("class-forget").addEventListener("click", act(async (entry) => leaveIf(await forgetClass(entry))));
  byId("class-more").addEventListener("click", () => load(next));
  byId("chosen-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setKind();
  });
  byId("chosen-move").addEventListener("click", moveChosen);
  byId("chosen-remove").addEventListener("click", () => {
    const { name } = current();
    forChosen(api.removeAll, [" removed from ", nameMark(name), "."]);
  });
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
  fill(byId("class-sign"), badge(entry), " ", countText(entry), ". ", ...advice(entry, workspace.classes.length === 1));
  byId("class-sign").title = entry.accuracy === null ? "" : intervalText(entry.accuracy);
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
  const open = () => showExamples(examples, examples.findIndex(({ id: one }) => one === example.id));
  const label = `${description}, show large`;
  const image = button(thumbnailOf(example, description), open, { class: "plain open", "aria-label": label });
  image.disabled = example.image === null;
  const tile = element("div", { class: "tile" }, image, ...captionOf(example));
  const item = element("li", {}, tile);
  if (!workspace.teaches) return item;
  const checked = chosen.has(example.id);
  const box = element("input", { type: "checkbox", checked, "aria-label": `Select ${description}` });
  box.addEventListener("change", () => {
    if (box.checked && chosen.size < MAX_CHOSEN) chosen.add(example.id);
    else chosen.delete(example.id);
    box.checked = chosen.has(example.id);
    showChosen();
  });
  // A finger needs more than the box.
  tile.append(element("label", { class: "select" }, box));
  if (example.fine_kind === "guessed") {
    const words = `Yes, it is ${isolated(example.fine)}`;
    item.append(button("Confirm", () => confirm(example), { class: "small confirm", "aria-label": words }));
  }
  return item;
}

function captionOf({ fine, fine_kind: kind, fine_probability: share }) {
  if (fine === null) return [];
  const sure = kind === "guessed" ? `? ${share === null ? "" : percent(share)}` : "";
  return [element("span", { class: kind === "guessed" ? "caption guess" : "caption" }, named(fine), sure)];
}

function confirm(example) {
  const text = ["This picture is now ", nameMark(example.label), " · ", nameMark(example.fine), "."];
  return runChange(() => api.relabel(example.id, { fine: example.fine }), text);
}

function showChosen() {
  byId("chosen").hidden = chosen.size === 0;
  byId("chosen-count").textContent = `${chosen.size} selected`;
  const names = current()?.fine.map((kind) => kind.name) ?? [];
  fill(byId("chosen-kinds"), ...names.map((name) => element("option", { value: name })));
}

async function setKind() {
  const fine = byId("chosen-kind").value.trim();
  if (fine === "") return;
  const now = [chosen.size === 1 ? " is now " : " are now ", nameMark(current().name), " · ", nameMark(fine), "."];
  await forChosen((examples) => api.relabelAll(examples, { fine }), now);
}

async function moveChosen() {
  const answer = await ask({
    title: "Move to another class",
    text: [`${counted(chosen.size, "picture")} selected. To which class do they belong?`],
    fields: [{ name: "label", label: "Class, known or new" }],
    accept: "Move",
  });
  const label = answer === null ? null : await agreeOnName(answer.label);
  if (label === null) return;
  await forChosen((examples) => api.relabelAll(examples, { label }), [" moved to ", nameMark(label), "."]);
}

/** Makes one change for all selected pictures, with one undo; `done` ends the sentence about it. */
async function forChosen(change, done) {
  const examples = [...chosen];
  if (!(await runChange(() => change(examples), [counted(examples.length, "picture"), ...done]))) return;
  chosen.clear();
  byId("chosen-kind").value = "";
  showPictures();
  // The form that had the focus is hidden now.
  byId("class-title").focus();
}
