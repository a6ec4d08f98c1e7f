/** The view of mix-ups: the confusion matrix as a table, and the most frequent pairs in words. */

import * as api from "./api.js";
import { confusedPairs, rowTotal } from "./confusion_matrix.js";
import { showMessage } from "./dialogs.js";
import { byId, button, element, fill, named } from "./dom.js";
import { showExamples } from "./large_view.js";
import { notifyError } from "./notifications.js";
import { counted, isolated, percent } from "./text.js";
import { thumbnailOf } from "./thumbnails.js";
import { token } from "./token.js";
import { workspace } from "./workspace.js";

// A larger table is hard to read; the service chooses the classes with the most mistakes.
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
  const isCurrent = workspace.watch();
  try {
    const confusion = await api.confusion(MAX_CLASSES);
    if (isCurrent()) show(confusion);
  } catch (error) {
    api.expectProblem(error);
    if (isCurrent()) seen = null;
  }
}

/** Counts of `unknown` overlap those of the other columns; null if too few examples were measured. */
function show({ classes: labels, counts, unknown, n_classes: nClasses }) {
  const measured = labels.length > 0;
  byId("confusion-none").hidden = measured;
  byId("confusion-body").hidden = !measured;
  if (!measured) return;
  const totals = counts.map((row, i) => rowTotal(row, workspace.named(labels[i])?.accuracy?.n));
  const pairs = confusedPairs(labels, counts, totals);
  fill(byId("confusion-pairs"), ...pairs.slice(0, MAX_PAIRS).map(pairItem));
  byId("confusion-pairs-none").hidden = pairs.length > 0;
  byId("confusion-part").textContent =
    labels.length < nClasses ? `The ${labels.length} classes that are most often mistaken for each other, of ${nClasses}.` : "";
  byId("table-unknown").hidden = unknown === null;
  fill(byId("confusion-table"), ...tableOf(labels, counts, unknown, totals));
}

function pairItem({ is, called, times, n }) {
  const often = `: ${times} of ${counted(n, "picture")} (${percent(times / n)})`;
  const open = button("Show", () => showCell(is, called, times), { class: "plain link" });
  open.setAttribute("aria-label", `Show ${isolated(is)} mistaken for ${isolated(called)}`);
  const words = element("p", { class: "pair" }, named(is), " mistaken for ", named(called), often);
  return element("li", {}, element("div", { class: "row spread" }, words, open));
}

function tableOf(labels, counts, unknown, totals) {
  const head = element("tr", {}, element("th", { scope: "col" }, "Shown ↓ called →"));
  for (const label of labels) {
    const name = element("span", {}, named(label));
    head.append(element("th", { scope: "col", class: "column", title: isolated(label) }, name));
  }
  if (unknown !== null) {
    head.append(element("th", { scope: "col", class: "column" }, element("span", {}, element("em", {}, "unknown"))));
  }
  const body = labels.map((label, i) => {
    const cells = counts[i].map((times, j) => cellOf(label, labels[j], times, totals[i]));
    if (unknown !== null) cells.push(cellOf(label, null, unknown[i], totals[i]));
    return element("tr", {}, element("th", { scope: "row" }, named(label)), ...cells);
  });
  return [element("thead", {}, head), element("tbody", {}, ...body)];
}

/** @param {string|null} called null for unknown */
function cellOf(is, called, times, n) {
  const cell = element("td", { class: is === called ? "right" : "wrong" });
  cell.style.setProperty("--share", String(n === 0 ? 0 : times / n));
  if (times === 0) return cell;
  // Only mistakes are worth a look.
  if (is === called) {
    cell.textContent = String(times);
    return cell;
  }
  const words = `${isolated(is)} mistaken for ${called === null ? "something unknown" : isolated(called)}: ${times} of ${n}`;
  cell.append(button(String(times), () => showCell(is, called, times), { class: "cell", title: words, "aria-label": words }));
  return cell;
}

/** Shows the pictures of a cell. The service lists the first ones, without those removed since. */
async function showCell(is, called, times) {
  const { value: asking } = token;
  try {
    const { items } = await api.confusionExamples(is, called);
    if (token.value !== asking) return;
    const tiles = items.map((example, i) => {
      const image = thumbnailOf(example, `Picture ${example.id}`);
      const open = button(image, () => showExamples(items, i), { class: "plain open" });
      open.disabled = example.image === null;
      return element("li", {}, open);
    });
    const rest = items.length < times ? " Some of the pictures are not listed." : "";
    const other = called === null ? "something unknown" : named(called);
    const text = element("p", {}, named(is), " mistaken for ", other, `: ${counted(times, "picture")}.`, rest);
    showMessage("Mix-up", text, element("ul", { class: "tiles" }, ...tiles));
  } catch (error) {
    api.expectProblem(error);
    notifyError(error);
  }
}
