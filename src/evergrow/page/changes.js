/** Changes of whole classes: each asks for confirmation, makes the change and reports the result. */

import * as api from "./api.js";
import { notify, notifyError } from "./notifications.js";
import { ask, showMessage } from "./dialogs.js";
import { element, named } from "./dom.js";
import { agreeOnNewName, similarClass } from "./name_check.js";
import { counted, nameMark } from "./text.js";
import { workspace } from "./workspace.js";

const PICTURES_PER_KIND = 2;
const MIN_KINDS = 2;

/**
 * Makes a change and reports the result; resolves to whether it was made.
 *
 * @param {() => Promise<any>} change
 * @param {Array<object|string>} text what was done, as parts of a sentence
 */
export async function runChange(change, text) {
  try {
    await workspace.change(change);
    notify("good", ...text);
    return true;
  } catch (error) {
    api.expectProblem(error);
    notifyError(error);
    return false;
  }
}

/** Resolves to whether the class was merged into another one. */
export async function renameClass({ name }) {
  const answer = await ask({
    title: "Rename class",
    text: ["What should ", named(name), " be called?"],
    fields: [{ name: "to", label: "New name", value: name }],
    accept: "Rename",
  });
  if (answer === null || answer.to === name) return false;
  const to = similarClass(answer.to) === name ? answer.to : await agreeOnNewName(name, answer.to);
  if (to === null) return false;
  // The user chose the class that has nearly this name.
  if (to !== answer.to) return runChange(() => api.merge(name, to), mergedText(name, to));
  await runChange(() => api.rename(name, to), [nameMark(name), " is now called ", nameMark(to), "."]);
  return false;
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
  if (answer === null) return false;
  return runChange(() => api.merge(name, answer.into), mergedText(name, answer.into));
}

function mergedText(name, into) {
  return ["The pictures of ", nameMark(name), " are now ", nameMark(into), "."];
}

/** Resolves to whether the class was forgotten. */
export async function forgetClass({ name, n_examples: n }) {
  const answer = await ask({
    title: "Forget class?",
    text: ["The model forgets ", named(name), ` and its ${counted(n, "picture")}. This can be undone.`],
    accept: "Forget",
    danger: true,
  });
  if (answer === null) return false;
  return runChange(() => api.forget(name), ["Forgot ", nameMark(name), ` and its ${counted(n, "picture")}.`]);
}

export async function splitClass(entry) {
  const missing = missingForSplit(entry);
  if (missing !== null) showMessage("Not yet: kinds are missing", ...missing);
  else await runChange(() => api.split(entry.name), ["The model now tells the kinds of ", nameMark(entry.name), " apart."]);
}

export async function joinClass({ name }) {
  await runChange(() => api.unsplit(name), ["The kinds of ", nameMark(name), " are one class again."]);
}

/** Paragraphs about what a split still needs; null if it needs nothing. */
function missingForSplit({ name, fine }) {
  const ready = fine.filter((kind) => kind.n_given >= PICTURES_PER_KIND);
  if (ready.length >= MIN_KINDS) return null;
  const rule = `To split it, at least ${MIN_KINDS} kinds need ${PICTURES_PER_KIND} pictures each.`;
  const begun = fine.map((kind) =>
    element("li", {}, named(kind.name), `: ${counted(kind.n_given, "picture")}`),
  );
  return [
    element("p", {}, "A split teaches the model to tell kinds of ", named(name), ` apart. ${rule}`),
    begun.length > 0 ? element("p", {}, "So far:") : element("p", {}, "So far no picture has a kind."),
    element("ul", {}, ...begun),
    element("p", {}, "Select pictures of one kind below, type its name and press “Set kind”."),
  ];
}
