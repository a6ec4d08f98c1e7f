/** Changes in words, for the undo button. */

import { counted, nameMark } from "./text.js";

// Changes that the service makes on its own are not listed: users do not undo them.
const CHANGES = {
  teach: ({ label }) => ["taught ", nameMark(label)],
  relabel: ({ from, to, examples }) =>
    from.label === to.label
      ? ["gave ", pictures(examples), " of ", nameMark(to.label), finer(to, examples)]
      : ["moved ", pictures(examples), " to ", nameMark(to.label)],
  confirm: ({ label, examples }) => ["kept ", pictures(examples), " in ", nameMark(label)],
  remove: ({ label, examples }) => ["removed ", pictures(examples), " of ", nameMark(label)],
  forget: ({ label }) => ["forgot ", nameMark(label)],
  rename: ({ from, to }) => ["renamed ", nameMark(from), " to ", nameMark(to)],
  merge: ({ label, into_label: into }) => ["merged ", nameMark(label), " into ", nameMark(into)],
  split: ({ label }) => ["split ", nameMark(label)],
  unsplit: ({ label }) => ["joined ", nameMark(label)],
};

/** Whether users can undo a change. */
export function isUndoable({ kind, undone_by: undoneBy }) {
  return kind in CHANGES && undoneBy === null;
}

/** Text parts of what a change did. */
export function describeChange({ kind, body }) {
  return CHANGES[kind](body);
}

/** The number of examples of a change; a single one is not listed in it. */
function pictures(examples = []) {
  return examples.length < 2 ? "a picture" : counted(examples.length, "picture");
}

function finer({ fine }, examples = []) {
  if (fine === null) return examples.length < 2 ? " no finer name" : " no finer names";
  return examples.length < 2 ? " a finer name" : " finer names";
}
