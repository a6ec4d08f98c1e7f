/** Marks that show whether a class has enough pictures. */

import { FIRST_PICTURES, intervalText, SIGN_TITLES } from "./class_advice.js";
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

/** A bar of how often a class is recognised; nothing if that was not measured. */
export function accuracyBar({ accuracy }) {
  if (accuracy === null) return null;
  const full = element("span", { class: "full" });
  full.style.inlineSize = `${100 * accuracy.rate}%`;
  return element("span", { class: "track", title: intervalText(accuracy), "aria-hidden": "true" }, full);
}
