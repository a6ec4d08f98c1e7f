/** Builds the page out of elements, never out of markup: what people type stays text. */

/**
 * @param {string} tag
 * @param {object} properties `class`, `on` (listeners by event), element properties, attributes;
 *   undefined, null and false are left out.
 * @param {...(Node|string|null)} children
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "on") listen(made, value);
    else if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...present(children));
  return made;
}

export function listen(target, listeners) {
  for (const [event, listener] of Object.entries(listeners)) target.addEventListener(event, listener);
}

export function fill(parent, ...children) {
  parent.replaceChildren(...present(children));
}

export function byId(id) {
  return document.getElementById(id);
}

// About what two lines of a narrow place hold; longer names are cut there.
const LONG_NAME = 30;

/** The name of a class. Its own direction of writing must not turn the sentence around it. */
export function named(text) {
  return element("bdi", { class: "name", title: text.length > LONG_NAME ? text : null }, text);
}

/** The same for places that take text only, such as announcements and labels of controls. */
export function isolated(text) {
  return `\u2068${text}\u2069`;
}

export function button(text, listener, properties = {}) {
  return element("button", { type: "button", ...properties, on: { click: listener } }, text);
}

export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

const shown = new WeakMap();

/**
 * Shows a list anew only where it changed, so that focus and loaded pictures stay.
 *
 * @param {HTMLElement} list
 * @param {Array<{key: string|number, state: any}>} items `state` is all that is seen of an item
 * @param {(item: object) => HTMLElement} build makes the list item
 */
export function showList(list, items, build) {
  const before = new Map([...list.children].map((child) => [shown.get(child)?.key, child]));
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const children = items.map((item) => {
    const state = JSON.stringify(item.state);
    const old = before.get(item.key);
    if (old !== undefined && shown.get(old).state === state) return old;
    const made = build(item);
    shown.set(made, { key: item.key, state });
    if (focused !== null && old?.contains(focused)) {
      const place = [...old.querySelectorAll(FOCUSABLE)].indexOf(focused);
      queueMicrotask(() => made.querySelectorAll(FOCUSABLE)[place]?.focus());
    }
    return made;
  });
  // Moving an element takes its focus away, so what is in place is left alone.
  children.forEach((child, i) => {
    if (list.children[i] !== child) list.insertBefore(child, list.children[i] ?? null);
  });
  while (list.children.length > children.length) list.lastElementChild.remove();
}

const FOCUSABLE = "a[href], button, input, select";

/** Whether keys that come now are meant as text. */
export function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"))
  );
}

function present(children) {
  return children.filter((child) => child !== null && child !== undefined && child !== false);
}
