/** Tells people what happened: in a corner of the page, and aloud where a screen reader runs. */

import { byId, element } from "./dom.js";

const SHOWN = { good: 5000, kept: 7000, bad: 12000 };
const MOST_NOTES = 3;

/** Says something that can be seen elsewhere already. */
export function say(text) {
  const place = byId("spoken");
  // The same sentence twice is only read twice if the region was empty between.
  place.textContent = "";
  requestAnimationFrame(() => {
    place.textContent = text;
  });
}

/** Shows a note, which is read aloud too. `kind` is one of good, kept (for later) and bad. */
export function note(kind, ...content) {
  const place = byId("notes");
  // Of the same kind of news only the latest is worth the room.
  for (const older of place.querySelectorAll(`.note.${kind}`)) older.remove();
  const close = element("button", { type: "button", class: "plain close", "aria-label": "Close this note" }, "×");
  const shown = element("div", { class: `note ${kind}` }, element("p", {}, ...content), close);
  let timer = null;
  const wait = () => {
    timer = setTimeout(() => shown.remove(), SHOWN[kind]);
  };
  close.addEventListener("click", () => shown.remove());
  // Whoever is about to close it must not miss it.
  for (const begin of ["pointerenter", "focus"]) close.addEventListener(begin, () => clearTimeout(timer));
  for (const end of ["pointerleave", "blur"]) close.addEventListener(end, wait);
  place.append(shown);
  while (place.children.length > MOST_NOTES) place.firstElementChild.remove();
  wait();
}

/** Shows what went wrong in the words of the service. */
export function failed(error) {
  note("bad", error.message);
}
