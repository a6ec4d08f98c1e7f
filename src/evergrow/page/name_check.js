/** Names of classes that are easily taken for one another. */

import { ask } from "./dialogs.js";
import { named } from "./dom.js";
import { outbox } from "./outbox.js";
import { similarName } from "./text.js";
import { workspace } from "./workspace.js";

/** The class whose name differs from this one only by case or space, or null. */
export function similarClass(label) {
  return similarName(label, [...workspace.classes.map((entry) => entry.name), ...outbox.labels]);
}

/** Asks about a name that nearly exists. Resolves to the name to use, or null if cancelled. */
export function agreeOnName(label) {
  return chooseName(label, (similar) => ({
    text: ["There is a class ", named(similar), ". Use it?"],
    accept: ["Use ", named(similar)],
    other: ["New class ", named(label)],
  }));
}

/** The same about a new name of a class: to use the other name means to merge the classes. */
export function agreeOnNewName(name, label) {
  return chooseName(label, (similar) => ({
    text: ["There is a class ", named(similar), ". Merge ", named(name), " into it?"],
    accept: ["Merge into ", named(similar)],
    other: ["Rename to ", named(label)],
  }));
}

async function chooseName(label, question) {
  const similar = similarClass(label);
  if (similar === null) return label;
  const answer = await ask({ title: "Is it the same class?", ...question(similar) });
  if (answer === null) return null;
  return answer.other ? label : similar;
}
