/** Builds the page from elements, never from markup: what users type stays text. */

/**
 * @param {string} tag
 * @param {object} properties `class`, `on` (listeners by event), element properties, attributes;
 *   undefined, null and false are left out.
 * @param {...(Node|string|{name: string}|null)} children nodes, text, and marked names of text.js
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

// About two lines on a phone; longer names are cut there.
const LONG_NAME = 30;

/** The name of a class. Its writing direction must not change that of the sentence around it. */
export function named(text) {
  return element("bdi", { class: "name", title: text.length > LONG_NAME ? text : null }, text);
}

/** The text of a button: names stay in its lines. */
export function words(...parts) {
  return element("span", { class: "words" }, ...parts);
}

export function button(text, listener, properties = {}) {
  return element("button", { type: "button", ...properties, on: { click: listener } }, text);
}

const shown = new WeakMap();

/**
 * Updates a list only where it changed, so that focus and loaded pictures stay.
 *
 * @param {HTMLElement} list
 * @param {Array<{key: string|number, state: any}>} items `state` is everything that an item shows
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
  // Moving an element removes its focus, so elements in place are not touched.
  children.forEach((child, i) => {
    if (list.children[i] !== child) list.insertBefore(child, list.children[i] ?? null);
  });
  while (list.children.length > children.length) list.lastElementChild.remove();
}

const FOCUSABLE = "a[href], button, input, select";

/** Whether the user is typing text. */
export function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"))
  );
}

function present(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === "object" && !(child instanceof Node) ? named(child.name) : child));
}
