/** The view of mix-ups: the confusion matrix as a table, and the most frequent pairs in words. */

import * as api from "./api.js";
import { confusedPairs, rowTotal, worstClasses } from "./confusion_matrix.js";
import { byId, element, fill, named } from "./dom.js";
import { counted, isolated, percent } from "./text.js";
import { workspace } from "./workspace.js";

// A larger table is hard to read; the worst classes are shown.
const MAX_CLASSES = 24;
const MAX_PAIRS = 12;

let open = false;
let seen = null;

export const confusionView = {
  enter() {
    open = true;
    seen = null;
    load();
  },
  leave() {
    open = false;
  },
};

export function startConfusion() {
  workspace.addEventListener("change", load);
}

async function load() {
  if (!open || workspace.status === null || seen === workspace.version) return;
  seen = workspace.version;
  try {
    show(await api.confusion());
  } catch (error) {
    api.expectProblem(error);
    seen = null;
  }
}

function show({ classes: labels, counts }) {
  const measured = labels.length > 0;
  byId("confusion-none").hidden = measured;
  byId("confusion-body").hidden = !measured;
  if (!measured) return;
  const pairs = confusedPairs(labels, counts);
  fill(byId("confusion-pairs"), ...pairs.slice(0, MAX_PAIRS).map(pairItem));
  byId("confusion-pairs-none").hidden = pairs.length > 0;
  const places = worstClasses(counts, MAX_CLASSES);
  byId("confusion-part").textContent =
    places.length < labels.length ? `The ${places.length} classes with the most mistakes, of ${labels.length}.` : "";
  fill(byId("confusion-table"), ...tableOf(places, labels, counts));
}

function pairItem({ is, called, times, n }) {
  const often = `: ${times} of ${counted(n, "picture")} (${percent(times / n)})`;
  return element("li", {}, named(is), " mistaken for ", named(called), often);
}

function tableOf(places, labels, counts) {
  const head = element("tr", {}, element("th", { scope: "col" }, "Shown ↓ called →"));
  for (const j of places) {
    const name = element("span", {}, named(labels[j]));
    head.append(element("th", { scope: "col", class: "column", title: isolated(labels[j]) }, name));
  }
  const body = places.map((i) => rowOf(i, places, labels, counts[i]));
  return [element("thead", {}, head), element("tbody", {}, ...body)];
}

function rowOf(i, places, labels, row) {
  const n = rowTotal(row);
  const cells = places.map((j) => {
    const share = n === 0 ? 0 : row[j] / n;
    const cell = element("td", { class: i === j ? "right" : "wrong" }, row[j] === 0 ? "" : String(row[j]));
    cell.title = `${isolated(labels[i])} called ${isolated(labels[j])}: ${row[j]} of ${n}`;
    cell.style.setProperty("--share", String(share));
    return cell;
  });
  return element("tr", {}, element("th", { scope: "row" }, named(labels[i])), ...cells);
}
