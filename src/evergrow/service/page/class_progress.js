/** Marks that show whether a class has enough pictures. */

import { FIRST_PICTURES, SIGN_TITLES } from "./class_advice.js";
import { element } from "./dom.js";

/** A short label; its colour never says more than its words. */
export function badge(entry) {
  return element("span", { class: `badge ${entry.sign}` }, SIGN_TITLES[entry.sign]);
}

/** Dots that fill up with the first pictures. */
export function dots(n) {
  const filled = Math.min(n, FIRST_PICTURES);
  const all = Array.from({ length: FIRST_PICTURES }, (_, i) =>
    element("span", { class: i < filled ? "dot filled" : "dot" }),
  );
  return element("span", { class: "dots", "aria-hidden": "true" }, ...all);
}
