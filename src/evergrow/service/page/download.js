/** The dialog that downloads the model, the pictures, the labels and the audit log. */

import * as api from "./api.js";
import { showMessage } from "./dialogs.js";
import { button, element, fill } from "./dom.js";
import { downloadFiles, savedText } from "./download_files.js";
import { notifyError } from "./notifications.js";
import { workspace } from "./workspace.js";

export function startDownload(control) {
  control.addEventListener("click", () => {
    const rows = downloadFiles(workspace.status).map(row);
    showMessage("Download", element("ul", { class: "downloads" }, ...rows));
  });
}

function row({ file, title, about, refused }) {
  const says = element("span", { class: "muted small" }, refused ?? about);
  const state = element("p", { class: "small", role: "status" });
  const words = element("span", { class: "stack" }, element("strong", {}, title), says);
  // Not `disabled`, which would take the focus away.
  const control = button("", () => save(file, control, state), { class: "download" });
  control.append(words, element("span", { class: "download-sign", "aria-hidden": "true" }));
  if (refused !== null) control.disabled = true;
  return element("li", {}, control, state);
}

/**
 * Requests need the token, which browsers do not send when they save a link. So the service prepares
 * the file and gives a link that is valid once: the browser saves it to disk itself, of any size.
 */
async function save(file, control, state) {
  if (control.ariaBusy === "true") return;
  control.ariaBusy = "true";
  state.classList.remove("problem");
  fill(state, "Preparing the file …");
  try {
    const link = await api.prepareDownload(file);
    element("a", { href: api.downloadAddress(link.ticket), download: link.name }).click();
    fill(state, savedText(link));
  } catch (error) {
    api.expectProblem(error);
    state.classList.add("problem");
    fill(state, error.message);
    // The dialog may have been closed meanwhile.
    if (!state.isConnected) notifyError(error);
  } finally {
    control.ariaBusy = "false";
  }
}
