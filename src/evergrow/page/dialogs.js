/** Modal dialogs. */

import { button, element, words } from "./dom.js";

/**
 * Asks in a dialog. Resolves to the values of the fields by name, or null if it was cancelled.
 *
 * @param {object} question
 * @param {string} question.title
 * @param {Array<Node|string>} question.text
 * @param {Array<object>} question.fields each {name, label, value, options, required}
 * @param {Array<Node>} question.content shown below the text
 * @param {string|Array<Node|string>} question.accept what the button does, as a verb
 * @param {string|Array<Node|string>} question.other another answer, which sets `other` to true
 * @param {string} question.refuse the answer that changes nothing
 * @param {boolean} question.danger whether the button destroys something
 * @param {boolean} question.unexpected whether the user did not open it, and may be typing
 */
export function ask({
  title,
  text = [],
  content = [],
  fields = [],
  accept,
  other,
  refuse = "Cancel",
  danger = false,
  unexpected = false,
}) {
  const { promise, resolve } = withResolvers();
  const inputs = fields.map(fieldOf);
  const cancel = button(refuse, () => dialog.close(), { class: "plain" });
  const second = element("button", { type: "button", hidden: !other }, words(...[other ?? ""].flat()));
  const first = element("button", { type: "submit", class: danger ? "danger" : "primary" }, words(...[accept].flat()));
  const form = element(
    "form",
    { method: "dialog", class: "stack" },
    element("h2", { id: "ask-title" }, title),
    element("p", {}, ...text),
    ...content,
    ...inputs.map((field) => field.row),
    element(
      "div",
      { class: "row end" },
      cancel,
      second,
      first,
    ),
  );
  let answer = null;
  form.addEventListener("submit", () => {
    answer = Object.fromEntries(inputs.map(({ name, input }) => [name, input.value.trim()]));
  });
  second.addEventListener("click", () => {
    answer = { other: true };
    dialog.close();
  });
  const dialog = element("dialog", { "aria-labelledby": "ask-title" }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(answer);
  });
  document.body.append(dialog);
  // Enter must not change anything by accident.
  if (danger || unexpected) cancel.autofocus = true;
  else if (inputs.length === 0) first.autofocus = true;
  dialog.showModal();
  inputs[0]?.input.select?.();
  return promise;
}

/** Closes all dialogs, as if they were cancelled: on phones, Back is meant to close what covers the page. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

/** Shows a message that only needs to be read. */
export function showMessage(title, ...content) {
  const dialog = element(
    "dialog",
    { "aria-labelledby": "tell-title" },
    element(
      "form",
      { method: "dialog", class: "stack" },
      element("h2", { id: "tell-title" }, title),
      ...content,
      element("div", { class: "row end" }, element("button", { class: "primary" }, "Close")),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function fieldOf({ name, label, value = "", options = null, required = true }) {
  const id = `ask-${name}`;
  // Nothing is chosen at first: the first option is rarely the one that is meant.
  const none = element("option", { value: "" }, "Choose …");
  const choices = options && [none, ...options.map((option) => element("option", { value: option }, option))];
  const input = choices
    ? element("select", { id, required }, ...choices)
    : element("input", { id, value, required, maxLength: 200, autocomplete: "off", dir: "auto" });
  const row = element("div", { class: "field" }, element("label", { htmlFor: id }, label), input);
  return { name, input, row };
}

function withResolvers() {
  let resolve;
  const promise = new Promise((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}
