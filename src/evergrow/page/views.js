/** Shows one view at a time: the one that the address names. */

import { classPage, shownClass, startClassPage } from "./class_page.js";
import { classesView, startClasses } from "./classes.js";
import { closeDialogs } from "./dialogs.js";
import { byId } from "./dom.js";
import { startDownload } from "./download.js";
import { startFileInput } from "./file_input.js";
import { outbox } from "./outbox.js";
import { reviewView, startReview } from "./review.js";
import { startHelp } from "./shortcuts.js";
import { startTeachView, teachView } from "./teach_view.js";
import { tray } from "./tray.js";
import { startTryView, tryView } from "./try_view.js";
import { startUndo } from "./undo.js";
import { workspace } from "./workspace.js";

const VIEWS = {
  teach: { view: teachView, title: "Teach" },
  try: { view: tryView, title: "Try it" },
  review: { view: reviewView, title: "Review" },
  classes: { view: classesView, title: "Classes" },
  class: { view: classPage, title: "Class", tab: "classes" },
};

let current = null;
// The view that an address without one shows.
let first = "teach";

/** Adds a view that not every page has. */
export function addView(name, view) {
  VIEWS[name] = view;
}

/** Whether a view is shown. */
export function isOpen() {
  return current !== null;
}

/** Shows the view named in the address. */
export function route({ focus = true } = {}) {
  if (workspace.status === null) return;
  const [name, detail] = location.hash.slice(1).split("/");
  // The link that skips to the content is not a view.
  if (name === "main" && current !== null) return;
  const known = Object.hasOwn(VIEWS, name) ? name : first;
  // A read-only token has nothing to teach.
  const next = known === "teach" && !workspace.teaches ? "try" : known;
  leaveView();
  current = next;
  showSection(`view-${next}`);
  for (const link of document.querySelectorAll("#views a")) {
    const here = link.hash === `#${VIEWS[next].tab ?? next}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${workspaceName()} · ${VIEWS[next].title}`;
  if (focus) {
    byId(`${next}-title`).focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
  VIEWS[next].view.enter(detail);
}

/** Leaves the view that is shown, if there is one. */
export function leaveView() {
  if (current !== null) VIEWS[current].view.leave();
  current = null;
}

export function workspaceName() {
  return workspace.status?.name || "Evergrow";
}

export function showSection(id) {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
}

/** Skips to the content without changing the address, which a reload needs. */
function startSkipping() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
}

/**
 * @param {object} options
 * @param {() => boolean} options.isTaken handles an address that names no view
 * @param {string} options.firstView the view that an address without one shows
 */
export function startViews({ isTaken = () => false, firstView = "teach" } = {}) {
  first = firstView;
  startSkipping();
  startTeachView();
  startTryView();
  startReview();
  startClasses();
  startClassPage();
  startUndo();
  startHelp(byId("help"));
  startDownload(byId("download"));
  startFileInput(() => (current === null ? null : { view: current, label: current === "class" ? shownClass() : null }));
  window.addEventListener("hashchange", () => {
    closeDialogs();
    if (!isTaken()) route();
  });
  window.addEventListener("beforeunload", (event) => {
    // Stored pictures survive; those in the tray, and those that could not be stored, do not.
    if (tray.pictures.length > 0 || outbox.unstored > 0) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (current !== "teach" && current !== "try") return;
    const { view } = VIEWS[current];
    if (document.hidden) view.leave();
    else view.enter();
  });
}
