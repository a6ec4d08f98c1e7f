/** Starts the page, which needs nothing but its file. */

// First, because it copies the page as it was opened.
import "./payload.js";
import { newKey, predict, teach } from "./api.js";
import { byId } from "./dom.js";
import { startDownload } from "./download.js";
import { inspect, measured, settings } from "./engine.js";
import { outbox } from "./outbox.js";
import { state } from "./state.js";
import { counted } from "./text.js";
import { route, startViews } from "./views.js";
import { workspace } from "./workspace.js";

const NOT_STORED = "This browser does not store what you teach here. Save the page before you close it.";

function showState() {
  const busy = outbox.waiting > 1;
  byId("sending").hidden = !busy;
  byId("sending").textContent = busy ? `Learning ${counted(outbox.waiting, "picture")} …` : "";
  byId("not-stored").hidden = state.stores;
  byId("not-stored").textContent = NOT_STORED;
}

// For the console of the browser, and for scripts: pictures are Blobs.
window.evergrow = {
  predict: (images) => predict(images),
  teach: (image, label) => teach({ image, label, key: newKey(), action: newKey() }),
  /** What was taught on this page. */
  lessons: () => state.lessons.all,
  /** The weights of the classes before recoding, and the calibration of "unknown". */
  inspect,
};

async function start() {
  byId("brand-name").textContent = settings.name;
  // A page that was given away is first of all to be asked.
  startViews({ firstView: "try" });
  startDownload(byId("save"));
  for (const source of [outbox, workspace, state]) source.addEventListener("change", showState);
  measured.addEventListener("measured", () => workspace.refresh());
  window.addEventListener("beforeunload", (event) => {
    if (state.unsaved) event.preventDefault();
  });
  try {
    await state.open();
    await workspace.open();
  } catch (error) {
    byId("start-text").textContent = `This page cannot start: ${error.message}`;
    return;
  }
  document.body.classList.remove("outside");
  route();
  outbox.open(state.page);
  showState();
}

start();
