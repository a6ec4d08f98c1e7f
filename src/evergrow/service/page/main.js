/** Starts the page: asks for the token, shows one view at a time, and shows the connection state. */

import { expectProblem, Unreachable } from "./api.js";
import { announce } from "./notifications.js";
import { ask } from "./dialogs.js";
import { classPage, startClassPage } from "./class_page.js";
import { classesView, clearCovers, startClasses } from "./classes.js";
import { confusionView, startConfusion } from "./confusion.js";
import { connection } from "./connection.js";
import { byId } from "./dom.js";
import { counted } from "./text.js";
import { startFileInput } from "./file_input.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { reviewView, startReview } from "./review.js";
import { startHelp } from "./shortcuts.js";
import { startTeachView, teachView } from "./teach_view.js";
import { clearPictures, storageWarning } from "./taught_pictures.js";
import { looksLikeToken, token } from "./token.js";
import { tray } from "./tray.js";
import { startUndo } from "./undo.js";

const VIEWS = {
  teach: { view: teachView, title: "Teach" },
  review: { view: reviewView, title: "Review" },
  classes: { view: classesView, title: "Classes" },
  class: { view: classPage, title: "Class", tab: "classes" },
  confusion: { view: confusionView, title: "Mix-ups" },
};

let current = null;

/** Shows the view named in the address. */
function route({ focus = true } = {}) {
  if (workspace.status === null) return;
  const [name, detail] = location.hash.slice(1).split("/");
  // The link that skips to the content is not a view.
  if (name === "main" && current !== null) return;
  const next = name in VIEWS ? name : "teach";
  if (current !== null) VIEWS[current].view.leave();
  current = next;
  showSection(`view-${next}`);
  for (const link of document.querySelectorAll("#views a")) {
    const here = link.hash === `#${VIEWS[next].tab ?? next}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[next].title} – Evergrow`;
  if (focus) {
    byId(`${next}-title`).focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
  VIEWS[next].view.enter(detail);
}

function showSection(id) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
}

/** Tries the token; shows the page, or the error. */
async function enter() {
  byId("enter-problem").textContent = "";
  try {
    await workspace.open();
  } catch (error) {
    // For a refused token, the token fires an event.
    if (error instanceof Unreachable) waitForService();
    else {
      expectProblem(error);
      if (error.status !== 401) askForToken(error.message);
    }
    return;
  }
  document.body.classList.remove("outside");
  route();
  if (workspace.teaches) outbox.open(workspace.status.id);
}

function waitForService() {
  askForToken("The service cannot be reached. This page continues by itself when it is back.");
  const again = () => {
    if (!connection.online) return;
    connection.removeEventListener("change", again);
    if (token.value !== null) enter();
  };
  connection.addEventListener("change", again);
}

function askForToken(problem = "") {
  if (current !== null) VIEWS[current].view.leave();
  current = null;
  document.body.classList.add("outside");
  showSection("view-enter");
  byId("enter-problem").textContent = problem;
  document.title = "Evergrow";
  byId("token").focus();
}

function startToken() {
  byId("enter-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("token").value.trim();
    if (!looksLikeToken(text)) {
      askForToken("This does not look like a token: letters and digits without spaces.");
      return;
    }
    token.set(text);
    byId("token").value = "";
    enter();
  });
  token.addEventListener("refused", ({ detail }) => {
    close();
    askForToken(`The service does not accept this token. ${detail}`);
  });
  byId("leave").addEventListener("click", signOut);
}

async function signOut() {
  if (outbox.waiting > 0) {
    const answer = await ask({
      title: "Not everything was sent",
      text: [`${counted(outbox.waiting, "picture")} stored here will be sent after the next sign-in.${storageWarning()}`],
      accept: "Sign out",
    });
    if (answer === null) return;
  }
  token.forget();
  close();
  tray.clear();
  askForToken();
}

function close() {
  outbox.close();
  workspace.close();
  clearCovers();
  clearPictures();
}

function showState() {
  const stored =
    outbox.written > 0
      ? `${counted(outbox.written, "picture")} stored here will be sent when it is back.${storageWarning()}`
      : "What you teach now is stored here and sent later.";
  byId("offline").hidden = connection.online;
  byId("offline").textContent = `The service cannot be reached. ${stored}`;
  byId("sending").hidden = !connection.online || outbox.waiting < 2;
  byId("sending").textContent = `Sending ${counted(outbox.waiting, "picture")} …`;
  byId("read-only").hidden = workspace.status === null || workspace.teaches;
}

/** Skips to the content without changing the address, which a reload needs. */
function startSkipping() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
}

function start() {
  startToken();
  startSkipping();
  startTeachView();
  startReview();
  startClasses();
  startClassPage();
  startConfusion();
  startUndo();
  startHelp(byId("help"));
  startFileInput(() => current !== null);
  for (const source of [connection, outbox, workspace]) source.addEventListener("change", showState);
  connection.addEventListener("change", () => {
    // A banner shows that it is offline.
    if (connection.online) announce("The service is back.");
  });
  window.addEventListener("hashchange", () => route());
  window.addEventListener("beforeunload", (event) => {
    // Stored pictures survive; those in the tray, and those that could not be stored, do not.
    if (tray.pictures.length > 0 || outbox.unstored > 0) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (current !== "teach") return;
    if (document.hidden) teachView.leave();
    else teachView.enter();
  });
  // Refused under an unknown certificate: then the page cannot open offline.
  navigator.serviceWorker?.register("static/worker.js", { scope: "./" }).catch(() => {});
  if (token.value === null) askForToken();
  else enter();
}

start();
