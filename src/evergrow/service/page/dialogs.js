/** Modal dialogs. */

import { button, element } from "./dom.js";

/**
 * Asks in a dialog. Resolves to the values of the fields by name, or null if it was cancelled.
 *
 * @param {object} question
 * @param {string} question.title
 * @param {Array<Node|string>} question.text
 * @param {Array<object>} question.fields each {name, label, value, options, required}
 * @param {string} question.accept what the button does, as a verb
 * @param {boolean} question.danger whether the button destroys something
 */
export function ask({ title, text = [], fields = [], accept, danger = false }) {
  const { promise, resolve } = withResolvers();
  const inputs = fields.map(fieldOf);
  const refuse = button("Cancel", () => dialog.close(), { class: "plain" });
  const form = element(
    "form",
    { method: "dialog", class: "stack" },
    element("h2", { id: "ask-title" }, title),
    element("p", {}, ...text),
    ...inputs.map((field) => field.row),
    element(
      "div",
      { class: "row end" },
      refuse,
      element("button", { type: "submit", class: danger ? "danger" : "primary" }, accept),
    ),
  );
  let answer = null;
  form.addEventListener("submit", () => {
    answer = Object.fromEntries(inputs.map(({ name, input }) => [name, input.value.trim()]));
  });
  const dialog = element("dialog", { "aria-labelledby": "ask-title" }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(answer);
  });
  document.body.append(dialog);
  // Enter must not delete anything by accident.
  if (danger) refuse.autofocus = true;
  dialog.showModal();
  inputs[0]?.input.select?.();
  return promise;
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
  const choices = options?.map((option) => element("option", { value: option }, option));
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
