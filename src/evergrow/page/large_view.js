/** A picture as large as the window. */

import { button, element, fill } from "./dom.js";
import { pictureOf } from "./thumbnails.js";
import { largeOf } from "./tray.js";

/** Shows a picture of this page that was not taught yet. */
export async function showLarge(picture) {
  if (picture === null) return;
  const canvas = await largeOf(picture);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Picture ${picture.name}`);
  open([{ caption: [picture.name], show: () => canvas }], 0);
}

/**
 * Shows taught pictures, one at a time.
 *
 * @param {Array<object>} examples
 * @param {number} first position of the one that is shown first
 */
export function showExamples(examples, first) {
  const items = examples.map((example) => ({
    caption: [{ name: example.label }, ...(example.fine === null ? [] : [" · ", { name: example.fine }])],
    show: () => pictureOf(example, `Picture ${example.id}`),
  }));
  open(items, first);
}

function open(items, first) {
  let place = first;
  const frame = element("div", { class: "large-picture" });
  const caption = element("p", { class: "grow" });
  const show = () => {
    fill(frame, items[place].show());
    fill(caption, ...items[place].caption, items.length > 1 ? ` (${place + 1} of ${items.length})` : "");
  };
  const step = (by) => {
    place = (place + by + items.length) % items.length;
    show();
  };
  const several = items.length > 1;
  const bar = element(
    "form",
    { method: "dialog", class: "row" },
    caption,
    several && button("‹", () => step(-1), { "aria-label": "Picture before" }),
    several && button("›", () => step(1), { "aria-label": "Next picture" }),
    element("button", { class: "primary", autofocus: true }, "Close"),
  );
  const dialog = element("dialog", { class: "large-view", "aria-label": "Picture" }, frame, bar);
  dialog.addEventListener("keydown", (event) => {
    if (several && event.key === "ArrowLeft") step(-1);
    if (several && event.key === "ArrowRight") step(1);
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  show();
  dialog.showModal();
}
