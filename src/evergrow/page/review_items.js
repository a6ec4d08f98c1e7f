/** Questions of the review: what is shown, which answers are offered, and what each one changes. */

import { isolated, percent } from "./text.js";

// As many as there are number keys.
const MAX_CHOICES = 9;

/** A picture without a name. */
export function unnamedItem(picture, classNames) {
  const { answer } = picture;
  const choices = (answer?.top ?? []).slice(0, MAX_CHOICES).map(({ name, probability }) => ({
    verb: "",
    name,
    // It says nothing about a picture that may show none of the classes, or where there is one class.
    share: answer.known && answer.top.length > 1 ? probability : null,
    names: { label: name, fine: name === answer.label ? answer.fine : null },
  }));
  const only = choices.length === 1;
  const known = (answer?.known ?? false) && !only;
  return {
    key: `picture ${picture.id}`,
    picture,
    question: "What is this?",
    hint: known || choices.length === 0 ? "" : unknownHint(only, choices[0].name),
    choices,
    accept: "Teach as ",
    // Enter must not accept a name that the model itself considers unlikely.
    acceptable: known,
    newName: (name) => ({ label: name, fine: null }),
    newNameLabel: "Another class, known or new",
    otherNames: () => classNames,
    certainty: known ? answer.probability : (answer?.probability ?? 0) - 1,
  };
}

function unknownHint(only, name) {
  return only ? `I know only ${isolated(name)} so far.` : "This doesn’t look like any class you have taught.";
}

/** What the keys do for an item, as pairs of key and words. */
export function keysOf({ choices, acceptable }) {
  const numbers = choices.length > 1 ? `1–${choices.length}` : "1";
  return [
    ...(choices.length > 0 ? [[numbers, "choose"]] : []),
    ["Enter", acceptable ? "the large button" : "type a name"],
    ...(acceptable ? [["N", "type another name"]] : []),
    ["S", "skip"],
    ["U", "undo"],
    ["?", "help"],
  ];
}

/** A kind that the model guessed. */
export function guessItem({ example, suggestion, probability }, kinds) {
  const others = kinds.filter((name) => name !== suggestion);
  const choices = [suggestion, ...others].slice(0, MAX_CHOICES).map((name) => {
    return { verb: "", name, share: name === suggestion ? probability : null, names: { fine: name } };
  });
  return {
    key: `example ${example.id}`,
    example,
    question: `Which kind of ${isolated(example.label)} is this?`,
    hint: `Guessed: ${isolated(suggestion)}, ${percent(probability)}.`,
    choices,
    accept: "Yes, it is ",
    acceptable: true,
    newName: (name) => ({ fine: name }),
    newNameLabel: "Another kind",
    otherNames: () => others,
    certainty: probability,
  };
}

/** A picture that looks like another class than it was taught as. */
export function doubtItem({ example, suggestion, probability }, classNames) {
  return {
    key: `example ${example.id}`,
    example,
    question: `Is this ${isolated(example.label)}?`,
    hint:
      `It was taught as ${isolated(example.label)}, ` +
      `but looks like ${isolated(suggestion)}. Probably wrong: ${percent(probability)}.`,
    choices: [
      // What was taught comes first: Enter must not replace it with what the model prefers.
      { verb: "Keep ", name: example.label, share: null, names: { label: example.label } },
      { verb: "Move to ", name: suggestion, share: probability, names: { label: suggestion } },
    ],
    accept: "Keep ",
    acceptable: true,
    newName: (name) => ({ label: name }),
    newNameLabel: "Another class, known or new",
    otherNames: () => classNames,
    certainty: 1 - probability,
  };
}
