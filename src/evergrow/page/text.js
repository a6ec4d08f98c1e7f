/** Text for people, made without the DOM. */

/** Marks the name of a class in a list of text parts; dom.js shows it as an element of its own. */
export function nameMark(name) {
  return { name };
}

/** A name inside plain text: its writing direction must not change that of the sentence. */
export function isolated(text) {
  return `\u2068${text}\u2069`;
}

export function percent(share) {
  return `${Math.round(100 * share)}%`;
}

export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** The name among `names` that differs from a name only by case or space, or null. */
export function similarName(name, names) {
  if (names.includes(name)) return null;
  const folded = fold(name);
  return names.find((other) => fold(other) === folded) ?? null;
}

/** Without case and space, as the command line compares names. */
function fold(name) {
  return Array.from(name.normalize("NFKC"), foldCase).join("").replaceAll(/\s+/gu, "");
}

/** As Python's casefold: one character at a time, and "ß" as "ss". */
function foldCase(character) {
  // Its upper case is that of another letter.
  if (character === "ı") return character;
  return character.toLowerCase().toUpperCase().toLowerCase();
}

/** Turns a message of the service, which is a clause, into a sentence. */
export function sentence(message) {
  const text = String(message);
  const end = /[.!?…]$/.test(text) ? "" : ".";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${end}`;
}
