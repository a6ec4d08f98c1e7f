/** Changes in words: for the undo button and for notifications. */

import { counted, nameMark } from "./text.js";

// By kind of change: from the body of the newest change, and the step.
const CHANGES = {
  teach: (_, step) => [pictures(step), ...ofClasses(step)],
  relabel: ({ from, to }, step) => {
    if (from.label === to.label) return ["the kind of ", pictures(step), ...ofClasses(step)];
    const where = step.n_changes === 1 ? [" to ", nameMark(to.label)] : ofClasses(step);
    return ["moved ", pictures(step), ...where];
  },
  confirm: ({ label, examples }) => ["kept ", counted(examples?.length || 1, "picture"), " in ", nameMark(label)],
  remove: (_, step) => ["removed ", pictures(step), ...ofClasses(step)],
  forget: ({ label }) => ["forgot ", nameMark(label)],
  rename: ({ from, to }) => ["renamed ", nameMark(from), " to ", nameMark(to)],
  merge: ({ label, into_label: into }) => ["merged ", nameMark(label), " into ", nameMark(into)],
  split: ({ label }) => ["split ", nameMark(label)],
  unsplit: ({ label }) => ["joined ", nameMark(label)],
};

/** Text parts of what a step of undo takes back; the step is as the service describes it. */
export function describeStep(step) {
  const kinds = Object.keys(step.kinds);
  if (kinds.length > 1) return [counted(step.n_changes, "change")];
  return CHANGES[kinds[0]]?.(step.body, step) ?? ["the last change"];
}

/**
 * A sentence about pictures that were taught, or moved, in one step.
 *
 * @param {object} done
 * @param {number} done.n pictures of this step
 * @param {number} done.total pictures that the class has now
 */
export function taughtText({ label, n, total, moved = false }) {
  const all = n < total ? ` (${total} in all).` : ".";
  return [`${moved ? "Moved" : "Taught"} ${counted(n, "picture")} ${moved ? "to" : "of"} `, nameMark(label), all];
}

/** A sentence about a step that was undone. */
export function undoneText(step) {
  const what = describeStep(step);
  if (Object.keys(step.kinds).join() !== "teach") return ["Undone: ", ...what, "."];
  return ["Undone: ", ...what, step.n_examples > 1 ? " were removed." : " was removed."];
}

function pictures({ n_examples: n }) {
  return counted(Math.max(1, n), "picture");
}

/** The class that the pictures were in or are in, or the number of classes; empty if not known. */
function ofClasses({ labels, n_labels: n }) {
  if (n === 0) return [];
  return [" of ", n === 1 ? nameMark(labels[0]) : counted(n, "class", "classes")];
}
