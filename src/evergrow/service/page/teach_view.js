/** The view to teach in: show something, see the prediction, give the name. */

import { AnswerPanel } from "./answer.js";
import { announce } from "./notifications.js";
import { connection } from "./connection.js";
import { byId, button, element, named, showList } from "./dom.js";
import { counted, isolated } from "./text.js";
import { workspace } from "./workspace.js";
import { LivePredictions } from "./live_predictions.js";
import { focusName, showNameForm, startNameForm, typedNames, setName } from "./name_form.js";
import { onHold } from "./hold_button.js";
import { badge, dots } from "./class_progress.js";
import { predictionParts, predictionText } from "./prediction_text.js";
import { Stage } from "./stage.js";
import { teachPicture } from "./taught_pictures.js";
import { tray } from "./tray.js";

const MAX_CLASSES = 30;
// A prediction is announced once it is the same for so many frames.
const STEADY_FRAMES = 3;
const OFFLINE = "No prediction while the service cannot be reached.";

const stage = new Stage();
const panel = new AnswerPanel(byId("answer"), teachSubject, focusName);
const live = new LivePredictions(stage.camera, () => stage.usesCamera && !workspace.empty && !panel.held, showLive);

let frame = null;
// Positions of the pictures in the tray when it was last shown.
let places = new Map();
let steady = { name: null, times: 0 };

export const teachView = {
  enter() {
    stage.resume();
    live.start();
  },
  leave() {
    live.stop();
    stage.pause();
  },
};

export function startTeachView() {
  startNameForm();
  onHold(byId("take"), take);
  byId("take-all").addEventListener("click", takeAll);
  byId("tray-clear").addEventListener("click", () => {
    tray.clear();
    byId("teach-title").focus();
  });
  byId("naming").addEventListener("keydown", (event) => {
    // Enter in a text field teaches; on a button it presses that button.
    const meant = event.key === "Enter" && !event.isComposing && !event.repeat;
    if (meant && event.target.matches("input")) take();
  });
  for (const kind of ["camera", "shown"]) stage.addEventListener(kind, showSubject);
  workspace.addEventListener("change", show);
  connection.addEventListener("change", show);
  tray.addEventListener("change", showTray);
  tray.addEventListener("added", ({ detail: pictures }) => {
    if (stage.picture === null) stage.show(pictures[0]);
  });
  show();
}

/** Another picture is shown: the frame of the last one must not be taught for it. */
function showSubject() {
  frame = null;
  showTray();
  show();
}

function show() {
  byId("steps").hidden = !workspace.empty || workspace.status === null || !workspace.teaches;
  byId("nothing-yet").hidden = !workspace.empty || workspace.teaches;
  byId("view-teach").classList.toggle("busy", stage.picture !== null || stage.prefersCamera);
  byId("naming").hidden = !workspace.teaches;
  byId("answer").hidden = workspace.empty;
  showAnswer();
  showTake();
  showClasses();
  showNameForm();
}

function showAnswer() {
  const { picture } = stage;
  if (picture === null) {
    if (!stage.usesCamera) panel.clear("Use the camera or add a picture to see a prediction.");
    else if (frame === null) panel.clear("Looking …");
    return;
  }
  if (picture.problem !== null) panel.clear(picture.problem);
  else if (picture.answer === null) panel.clear(connection.online ? "Looking …" : OFFLINE);
  else panel.show(picture.answer, workspace.teaches);
}

function showLive(image, answer) {
  frame = image;
  panel.show(answer, workspace.teaches);
  const text = predictionText(answer);
  const name = answer.known ? answer.label : "";
  const times = steady.name === name ? steady.times + 1 : 1;
  steady = { name, times };
  if (times === STEADY_FRAMES) announce(text);
}

function showTake() {
  const control = byId("take");
  control.textContent = stage.picture === null ? "Take a picture" : "Teach this picture";
  control.disabled = stage.picture === null && !stage.usesCamera;
  byId("take-note").hidden = !stage.usesCamera;
  const several = byId("take-all");
  several.hidden = tray.pictures.length < 2;
  several.textContent = `Teach all ${tray.pictures.length} pictures`;
}

/** Teaches the shown picture as a class of the panel. */
function teachSubject(label, fine) {
  const { picture } = stage;
  const image = picture?.image ?? frame;
  if (image === null) return;
  stage.blink();
  teachPicture({ image, label, fine, picture });
}

/** Teaches the shown picture with the typed name; returns whether holding the button repeats it. */
function take() {
  if (byId("take").disabled) return false;
  const names = typedNames();
  if (names === null) return false;
  const { picture } = stage;
  stage.blink();
  if (picture !== null) teachPicture({ image: picture.image, ...names, picture });
  else stage.camera.frame().then((image) => teachPicture({ image, ...names }));
  return picture === null;
}

function takeAll() {
  const names = typedNames();
  if (names === null) return;
  for (const picture of [...tray.pictures]) {
    if (picture.problem === null) teachPicture({ image: picture.image, ...names, picture });
  }
}

function showTray() {
  const { pictures } = tray;
  const gone = stage.picture !== null && !pictures.includes(stage.picture);
  // If the user chose the camera it stays; a removed picture is replaced by the next one.
  if (gone || (stage.picture === null && !stage.prefersCamera)) stage.show(nextTo(stage.picture));
  else showAnswer();
  places = new Map(pictures.map((picture, i) => [picture, i]));
  showTake();
  byId("tray").hidden = pictures.length === 0;
  byId("tray-title").textContent = `${counted(pictures.length, "picture")} without a name`;
  const items = pictures.map((picture) => {
    const pressed = stage.picture === picture;
    return { key: picture.id, state: [pressed, picture.answer, picture.problem], picture, pressed };
  });
  showList(byId("tray-pictures"), items, tileOf);
}

/** The picture after a removed one; the first if none was shown. */
function nextTo(picture) {
  const { pictures } = tray;
  return pictures[Math.min(places.get(picture) ?? 0, pictures.length - 1)] ?? null;
}

function tileOf({ picture, pressed }) {
  const answer = picture.answer === null ? ["…"] : predictionParts(picture.answer);
  const says = picture.problem === null ? answer : ["Cannot be used"];
  const image = element("span", { class: "thumb" });
  picture.tile.then((canvas) => canvas !== null && image.append(canvas));
  const choose = button(image, () => stage.show(picture), { class: "tile", "aria-pressed": String(pressed) });
  choose.append(element("span", { class: "sr" }, `${isolated(picture.name)}: `));
  choose.append(element("span", { class: "caption" }, ...says));
  const drop = button(element("span", {}, "×"), () => removePicture(picture), {
    class: "plain drop",
    "aria-label": `Remove ${picture.name}`,
  });
  return element("li", {}, choose, drop);
}

/** Removes a picture and focuses the next one, so that several can be removed by keyboard. */
function removePicture(picture) {
  const place = tray.pictures.indexOf(picture);
  tray.remove(picture);
  const rest = byId("tray-pictures").querySelectorAll(".drop");
  (rest[Math.min(place, rest.length - 1)] ?? byId("teach-title")).focus();
}

function showClasses() {
  const newest = [...workspace.classes].reverse().slice(0, MAX_CLASSES);
  byId("known").hidden = newest.length === 0;
  const { teaches } = workspace;
  const items = newest.map((entry) => {
    return { key: entry.id, state: [entry.name, entry.n_examples, entry.sign, teaches], entry };
  });
  showList(byId("known-classes"), items, classRow);
}

function classRow({ entry }) {
  const choose = () => {
    setName(entry.name);
    byId("take").focus();
  };
  const row = button(named(entry.name), choose, { class: "class-row", disabled: !workspace.teaches });
  const n = entry.n_examples;
  const shown = element("span", { class: "row muted" }, dots(n), counted(n, "picture"));
  row.append(shown, badge(entry));
  return element("li", {}, row);
}
