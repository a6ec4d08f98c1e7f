/** Downloads of the workspace: the model, and the labels of all pictures. */

import * as api from "./api.js";
import { showMessage } from "./dialogs.js";
import { button, element } from "./dom.js";
import { notifyError } from "./notifications.js";
import { workspace } from "./workspace.js";

const FILES = [
  { title: "Model", about: "For evergrow predict and evergrow.load.", path: "v1/model", ending: ".evergrow" },
  { title: "Labels (CSV)", about: "One line for each picture: its class and its kind.", path: "v1/labels", ending: ".csv" },
];

export function startDownload(control) {
  control.addEventListener("click", () => showMessage("Download", element("ul", { class: "downloads" }, ...FILES.map(row))));
}

function row(file) {
  const control = button(file.title, () => save(file, control));
  return element("li", { class: "stack tight" }, control, element("span", { class: "muted small" }, file.about));
}

/** Requests need the token, so a link alone cannot download. */
async function save({ path, ending }, control) {
  control.disabled = true;
  try {
    const url = URL.createObjectURL(await api.download(path));
    element("a", { href: url, download: `${workspace.status?.name || "evergrow"}${ending}` }).click();
    // The browser has begun to save it by then.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    api.expectProblem(error);
    notifyError(error);
  } finally {
    control.disabled = false;
  }
}
