/** Notifications in a corner of the page, and announcements for screen readers. */

import { byId, element } from "./dom.js";

const SHOWN_MS = { good: 5000, kept: 7000, bad: 12000 };
const MAX_NOTES = 3;
// Long enough to be read aloud; what was announced may be wrong later.
const SPOKEN_MS = 5000;

let spoken = null;

/** Announces to screen readers what is visible elsewhere on the page. */
export function announce(text) {
  const place = byId("spoken");
  // A repeated sentence is read again only if the region was empty in between.
  place.textContent = "";
  clearTimeout(spoken);
  requestAnimationFrame(() => {
    place.textContent = text;
  });
  spoken = setTimeout(() => {
    place.textContent = "";
  }, SPOKEN_MS);
}

/** Shows a notification, which screen readers read, and returns it. `kind` is good, kept (for later) or bad. */
export function notify(kind, ...content) {
  const place = byId("notes");
  // Of each kind only the latest is shown.
  for (const older of place.querySelectorAll(`.note.${kind}`)) older.remove();
  const close = element("button", { type: "button", class: "plain close", "aria-label": "Close this message" }, "×");
  const shown = element("div", { class: `note ${kind}` }, element("p", {}, ...content), close);
  let timer = null;
  const wait = () => {
    timer = setTimeout(() => shown.remove(), SHOWN_MS[kind]);
  };
  close.addEventListener("click", () => shown.remove());
  // It must not disappear while the user is about to close it.
  for (const begin of ["pointerenter", "focus"]) close.addEventListener(begin, () => clearTimeout(timer));
  for (const end of ["pointerleave", "blur"]) close.addEventListener(end, wait);
  place.append(shown);
  while (place.children.length > MAX_NOTES) place.firstElementChild.remove();
  wait();
  return shown;
}

/** Shows the message of an error. */
export function notifyError(error) {
  notify("bad", error.message);
}
