/** Starts the page: asks for the token, and shows the connection state. */

import { checkToken, expectProblem, Unreachable } from "./api.js";
import { announce, notify } from "./notifications.js";
import { ask } from "./dialogs.js";
import { clearCovers } from "./classes.js";
import { confusionView, startConfusion } from "./confusion.js";
import { connection } from "./connection.js";
import { byId } from "./dom.js";
import { counted } from "./text.js";
import { workspace } from "./workspace.js";
import { outbox } from "./outbox.js";
import { reviewQueue } from "./review_queue.js";
import { clearPictures, storageWarning } from "./taught_pictures.js";
import { looksLikeToken, token, tokenOfAddress } from "./token.js";
import { tray, tried } from "./tray.js";
import { addView, isOpen, leaveView, route, showSection, startViews, workspaceName } from "./views.js";

// The last token of this tab, even if it was refused.
let lastToken = token.value;

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
  leaveView();
  document.body.classList.add("outside");
  showSection("view-enter");
  byId("enter-problem").textContent = problem;
  document.title = "Evergrow";
  byId("brand-name").textContent = "Evergrow";
  byId("token").focus();
}

/** Takes the token out of an address like #token=…, so that it does not stay in the address bar; or null. */
function takeTokenOfAddress() {
  const found = tokenOfAddress(location.hash);
  if (found !== null) history.replaceState(null, "", location.pathname + location.search);
  return found;
}

/** Enters with the token of an address that was opened in this tab. */
function enterByAddress() {
  const found = takeTokenOfAddress();
  if (found === null) return false;
  replaceToken(found);
  return true;
}

/** Enters with another token if the service accepts it; otherwise the one of this tab stays. */
async function replaceToken(found) {
  if (token.value !== null && token.value !== found) {
    try {
      await checkToken(found);
    } catch (error) {
      expectProblem(error);
      notify("bad", `The token in the address is not used, the one before stays. ${error.message}`);
      if (!isOpen() && token.value !== null) enter();
      return;
    }
  }
  if (isOpen()) {
    leaveView();
    close();
  }
  setToken(found);
  enter();
}

/** Pictures of one token are not shown to the next. */
function setToken(value) {
  if (value !== lastToken) {
    tray.clear();
    tried.clear();
  }
  lastToken = value;
  token.set(value);
}

function startToken() {
  byId("enter-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("token").value.trim();
    if (!looksLikeToken(text)) {
      askForToken("This does not look like a token: letters and digits without spaces.");
      return;
    }
    setToken(text);
    byId("token").value = "";
    enter();
  });
  token.addEventListener("refused", ({ detail }) => {
    const { waiting } = outbox;
    close();
    const command = "evergrow token add DIR NAME --scope teach";
    const stored = waiting > 0 ? ` ${counted(waiting, "picture")} stored here will be sent when you have entered.` : "";
    askForToken(`${detail} Open the address that evergrow serve prints, or make a token with ${command}.${stored}`);
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
  tried.clear();
  askForToken();
}

function close() {
  outbox.close();
  workspace.close();
  clearCovers();
  clearPictures();
  reviewQueue.clear();
}

function showState() {
  const stored =
    outbox.written > 0
      ? `${counted(outbox.written, "picture")} stored here will be sent when it is back: after a restart, when you enter a token or open the new address.${storageWarning()}`
      : "What you teach now is stored here and sent later.";
  byId("offline").hidden = connection.online;
  byId("offline").textContent = `The service cannot be reached. ${stored}`;
  byId("sending").hidden = !connection.online || outbox.waiting < 2;
  byId("sending").textContent = `Sending ${outbox.waiting} …`;
  byId("read-only").hidden = workspace.status === null || workspace.teaches;
  if (workspace.status !== null) byId("brand-name").textContent = workspaceName();
  for (const tab of document.querySelectorAll("#views a[href='#teach']")) tab.hidden = !workspace.teaches;
}

function start() {
  startToken();
  addView("confusion", { view: confusionView, title: "Mix-ups" });
  startConfusion();
  startViews({ isTaken: enterByAddress });
  for (const source of [connection, outbox, workspace]) source.addEventListener("change", showState);
  connection.addEventListener("change", () => {
    // A banner shows that it is offline.
    if (connection.online) announce("The service is back.");
  });
  // Refused under an unknown certificate: then the page cannot open offline.
  navigator.serviceWorker?.register("static/worker.js", { scope: "./" }).catch(() => {});
  if (enterByAddress()) return;
  if (token.value === null) askForToken();
  else enter();
}

start();
