/** Changes of whole classes: each asks for confirmation, makes the change and reports the result. */

import * as api from "./api.js";
import { notify, notifyError } from "./notifications.js";
import { ask, showMessage } from "./dialogs.js";
import { element, named } from "./dom.js";
import { counted } from "./text.js";
import { workspace } from "./workspace.js";

const PICTURES_PER_KIND = 2;
const MIN_KINDS = 2;

/** Makes a change and reports the result; resolves to whether it was made. */
export async function runChange(change) {
  try {
    notify("good", (await workspace.change(change)).summary);
    return true;
  } catch (error) {
    api.expectProblem(error);
    notifyError(error);
    return false;
  }
}

export async function renameClass({ name }) {
  const answer = await ask({
    title: "Rename class",
    text: ["What should ", named(name), " be called?"],
    fields: [{ name: "to", label: "New name", value: name }],
    accept: "Rename",
  });
  if (answer !== null && answer.to !== name) await runChange(() => api.rename(name, answer.to));
}

/** Resolves to whether the class was merged into another one. */
export async function mergeClass({ name }) {
  const others = workspace.classes.map((entry) => entry.name).filter((other) => other !== name);
  if (others.length === 0) {
    showMessage("Nothing to merge with", element("p", {}, "There is only one class so far."));
    return false;
  }
  const answer = await ask({
    title: "Merge classes",
    text: ["All pictures of ", named(name), " become pictures of the class chosen here."],
    fields: [{ name: "into", label: "Merge into", options: others }],
    accept: "Merge",
  });
  return answer !== null && runChange(() => api.merge(name, answer.into));
}

/** Resolves to whether the class was forgotten. */
export async function forgetClass({ name, n_examples: n }) {
  const answer = await ask({
    title: "Forget class?",
    text: ["The model forgets ", named(name), ` and its ${counted(n, "picture")}. This can be undone.`],
    accept: "Forget",
    danger: true,
  });
  return answer !== null && runChange(() => api.forget(name));
}

export async function splitClass(entry) {
  const missing = missingForSplit(entry);
  if (missing === null) await runChange(() => api.split(entry.name));
  else showMessage("Not yet: finer names are missing", ...missing);
}

export async function joinClass({ name }) {
  await runChange(() => api.unsplit(name));
}

/** Paragraphs about what a split still needs; null if it needs nothing. */
function missingForSplit({ name, fine }) {
  const ready = fine.filter((kind) => kind.n_given >= PICTURES_PER_KIND);
  if (ready.length >= MIN_KINDS) return null;
  const rule = `To split it, at least ${MIN_KINDS} finer names need ${PICTURES_PER_KIND} pictures each.`;
  const begun = fine.map((kind) =>
    element("li", {}, named(kind.name), `: ${counted(kind.n_given, "picture")}`),
  );
  return [
    element("p", {}, "A split teaches the model to tell kinds of ", named(name), ` apart. ${rule}`),
    begun.length > 0 ? element("p", {}, "So far:") : element("p", {}, "So far no picture has a finer name."),
    element("ul", {}, ...begun),
    element("p", {}, "Choose pictures of one kind below, type its finer name and press “Give name”."),
  ];
}
