/** Which classes are mixed up: a table to see at a glance, and the worst pairs in words. */

import * as api from "./api.js";
import { byId, counted, element, fill, isolated, named, percent } from "./dom.js";
import { knowledge } from "./knowledge.js";

// More rows are no longer read; the worst ones are shown.
const MOST_CLASSES = 24;
const MOST_PAIRS = 12;

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
  knowledge.addEventListener("change", load);
}

async function load() {
  if (!open || knowledge.status === null || seen === knowledge.moment) return;
  seen = knowledge.moment;
  try {
    show(await api.confusion());
  } catch (error) {
    api.expectProblem(error);
    seen = null;
  }
}

/** Rows of the counts are what something is, columns what it is called. */
function show({ classes: labels, counts }) {
  const measured = labels.length > 0;
  byId("confusion-none").hidden = measured;
  byId("confusion-body").hidden = !measured;
  if (!measured) return;
  const rows = counts.map((row, i) => ({ i, n: sumOf(row), right: row[i] }));
  const pairs = pairsOf(labels, counts);
  fill(byId("confusion-pairs"), ...pairs.slice(0, MOST_PAIRS).map(pairItem));
  byId("confusion-pairs-none").hidden = pairs.length > 0;
  const worst = [...rows].sort((a, b) => b.n - b.right - (a.n - a.right)).slice(0, MOST_CLASSES);
  const places = worst.map((row) => row.i).sort((a, b) => a - b);
  byId("confusion-part").textContent =
    places.length < labels.length ? `The ${places.length} classes with most mistakes, of ${labels.length}.` : "";
  fill(byId("confusion-table"), ...tableOf(places, labels, counts));
}

function pairsOf(labels, counts) {
  const pairs = [];
  counts.forEach((row, i) => {
    const n = sumOf(row);
    row.forEach((times, j) => {
      if (i !== j && times > 0) pairs.push({ is: labels[i], called: labels[j], times, n });
    });
  });
  return pairs.sort((a, b) => b.times - a.times || b.times / b.n - a.times / a.n);
}

function pairItem({ is, called, times, n }) {
  const often = `: ${times} of ${counted(n, "picture")} (${percent(times / n)})`;
  return element("li", {}, named(is), " taken for ", named(called), often);
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
  const n = sumOf(row);
  const cells = places.map((j) => {
    const share = n === 0 ? 0 : row[j] / n;
    const cell = element("td", { class: i === j ? "right" : "wrong" }, row[j] === 0 ? "" : String(row[j]));
    cell.title = `${isolated(labels[i])} called ${isolated(labels[j])}: ${row[j]} of ${n}`;
    cell.style.setProperty("--share", String(share));
    return cell;
  });
  return element("tr", {}, element("th", { scope: "row" }, named(labels[i])), ...cells);
}

function sumOf(row) {
  return row.reduce((sum, times) => sum + times, 0);
}
