/** Changes of whole classes: each asks what it needs to know, does it and says what it did. */

import * as api from "./api.js";
import { notify, notifyError } from "./notifications.js";
import { ask, showMessage } from "./dialogs.js";
import { element, named } from "./dom.js";
import { counted } from "./text.js";
import { workspace } from "./workspace.js";

const EXAMPLES_EACH = 2;
const KINDS = 2;

/** Does a change and says how it went; whether it was done. */
export async function doing(change) {
  try {
    notify("good", (await change()).summary);
    return true;
  } catch (error) {
    api.expectProblem(error);
    notifyError(error);
    return false;
  } finally {
    await workspace.refresh();
  }
}

export async function renameClass({ name }) {
  const answer = await ask({
    title: "Rename class",
    text: ["What should ", named(name), " be called?"],
    fields: [{ name: "to", label: "New name", value: name }],
    accept: "Rename",
  });
  if (answer !== null && answer.to !== name) await doing(() => api.rename(name, answer.to));
}

/** Whether the class went into another. */
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
  return answer !== null && doing(() => api.merge(name, answer.into));
}

/** Whether the class was forgotten. */
export async function forgetClass({ name, n_examples: n }) {
  const answer = await ask({
    title: "Forget class?",
    text: ["The model forgets ", named(name), ` and its ${counted(n, "picture")}. This can be undone.`],
    accept: "Forget",
    danger: true,
  });
  return answer !== null && doing(() => api.forget(name));
}

export async function splitClass(entry) {
  const missing = missingForSplit(entry);
  if (missing === null) await doing(() => api.split(entry.name));
  else showMessage("Not yet: finer names are missing", ...missing);
}

export async function joinClass({ name }) {
  await doing(() => api.unsplit(name));
}

/** Paragraphs that say what a split still needs, or null if nothing. */
function missingForSplit({ name, fine }) {
  const ready = fine.filter((kind) => kind.n_given >= EXAMPLES_EACH);
  if (ready.length >= KINDS) return null;
  const rule = `To split it, at least ${KINDS} finer names need ${EXAMPLES_EACH} pictures each.`;
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
