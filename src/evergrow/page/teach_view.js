/** The view to teach in: show something, see the prediction, give the name. */

import { newKey } from "./api.js";
import { AnswerPanel } from "./answer.js";
import { announce } from "./notifications.js";
import { connection } from "./connection.js";
import { byId, button, element, fill, named, showList, words } from "./dom.js";
import { counted, isolated, nameMark } from "./text.js";
import { workspace } from "./workspace.js";
import { LivePredictions } from "./live_predictions.js";
import { agreeOnName, similarClass } from "./name_check.js";
import { nameForm, setName, showNameForm, startNameForm, typedLabel, typedNames } from "./name_form.js";
import { onHold } from "./hold_button.js";
import { badge, dots } from "./class_progress.js";
import { isOnlyClass, predictionText, shortParts } from "./prediction_text.js";
import { Stage } from "./stage.js";
import { teachPicture } from "./taught_pictures.js";
import { problemText, tray } from "./tray.js";

const MAX_CLASSES = 30;
// A prediction is announced once it is the same for so many frames.
const STEADY_FRAMES = 3;
const OFFLINE = "No prediction while the service cannot be reached.";

const stage = new Stage();
const panel = new AnswerPanel(byId("answer"), teachSubject);
const live = new LivePredictions(stage.camera, () => stage.usesCamera && !workspace.empty && !panel.held, showLive);

let frame = null;
// Pictures taken by one press of the button are one step of undo.
let press = newKey();
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
    // Enter in a text field presses the main button; on a button it presses that button.
    const meant = event.key === "Enter" && !event.isComposing && !event.repeat;
    if (!meant || !event.target.matches("input")) return;
    // Otherwise the key would press the button of a question that is asked now.
    event.preventDefault();
    if (severalWait()) takeAll();
    else take(true);
  });
  for (const kind of ["camera", "shown"]) stage.addEventListener(kind, showSubject);
  nameForm.addEventListener("change", () => {
    showTake();
    showAnswer();
  });
  workspace.addEventListener("change", show);
  connection.addEventListener("change", show);
  tray.addEventListener("change", showTray);
  tray.addEventListener("added", ({ detail: pictures }) => {
    // The last name was that of other pictures.
    setName("");
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
  byId("steps").hidden = !workspace.empty || workspace.status === null;
  byId("view-teach").classList.toggle("busy", stage.picture !== null || stage.prefersCamera);
  byId("answer").hidden = workspace.empty;
  showAnswer();
  showTake();
  showClasses();
  showNameForm();
}

function showAnswer() {
  const { picture } = stage;
  if (picture === null) {
    if (!stage.usesCamera) panel.clear("Use the camera or choose a picture to see a prediction.");
    else if (frame === null) panel.clear("Looking …");
    return;
  }
  if (picture.problem !== null) panel.clear("This picture is left out.");
  else if (picture.answer === null) panel.clear(connection.online ? "Looking …" : OFFLINE);
  else panel.show(picture.answer, { main: acceptIsMain() });
}

/** The view has one main button: it accepts the prediction only while no name is typed. */
function acceptIsMain() {
  const { picture } = stage;
  return (picture?.answer?.known ?? false) && picture.answer.top.length > 1 && typedLabel() === "" && !severalWait();
}

function showLive(image, answer) {
  frame = image;
  panel.show(answer, { live: true });
  const text = predictionText(answer);
  // A class that was the only one is announced again when there is a second one.
  const name = isOnlyClass(answer) ? null : answer.known ? answer.label : "";
  const times = steady.name === name ? steady.times + 1 : 1;
  steady = { name, times };
  if (times === STEADY_FRAMES) announce(text);
}

function severalWait() {
  return stage.picture !== null && tray.usable.length > 1;
}

function showTake() {
  const { picture } = stage;
  const label = typedLabel();
  const name = label === "" ? [] : [" as ", nameMark(label)];
  const several = severalWait();
  const control = byId("take");
  if (several) fill(control, "Teach only this picture");
  else if (label !== "") fill(control, words("Teach", ...name));
  else fill(control, picture === null ? "Take a picture" : "Teach this picture");
  control.disabled = picture === null ? !stage.usesCamera : picture.problem !== null;
  control.classList.toggle("primary", !several && !acceptIsMain());
  byId("take-all").hidden = !several;
  fill(byId("take-all"), words(`Teach all ${tray.usable.length}`, ...(label === "" ? [" pictures"] : name)));
  byId("take-note").textContent = takeNote(control.disabled);
}

function takeNote(disabled) {
  if (disabled && stage.picture === null) return "Use the camera or choose pictures first.";
  if (stage.usesCamera) return "Hold the button to take several while you turn the thing.";
  return "";
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
function take(isFirst) {
  if (byId("take").disabled) return false;
  const names = typedNames();
  if (names === null) return false;
  if (isFirst) press = newKey();
  const { picture } = stage;
  const image = picture === null ? stage.camera.frame() : picture.image;
  stage.blink();
  const asks = similarClass(names.label) !== null;
  teachWith(names, async (agreed) => {
    teachPicture({ image: await image, ...agreed, picture, action: press });
    // The next picture of the tray may show another thing.
    if (picture !== null && tray.pictures.length > 0) setName("");
    if (picture !== null && tray.usable.length === 0) tray.removeUnusable();
  });
  return picture === null && !asks;
}

function takeAll() {
  const names = typedNames();
  if (names === null) return;
  const action = newKey();
  teachWith(names, (agreed) => {
    for (const picture of tray.usable) teachPicture({ image: picture.image, ...agreed, picture, action });
    tray.removeUnusable();
  });
}

/** Teaches with typed names, after asking if the class has nearly the name of another one. */
async function teachWith(names, teach) {
  if (similarClass(names.label) === null) {
    teach(names);
    return;
  }
  const label = await agreeOnName(names.label);
  if (label === null) return;
  if (label !== names.label) setName(label);
  teach({ ...names, label });
}

function showTray() {
  const { pictures } = tray;
  const gone = stage.picture !== null && !pictures.includes(stage.picture);
  // If the user chose the camera it stays; a removed picture is replaced by the next one.
  if (gone || (stage.picture === null && !stage.prefersCamera)) stage.show(nextTo(stage.picture));
  else showAnswer();
  places = new Map(pictures.map((picture, i) => [picture, i]));
  showTake();
  byId("view-teach").classList.toggle("with-tray", pictures.length > 0);
  byId("tray").hidden = pictures.length === 0;
  byId("tray-problem").textContent = problemText(pictures);
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
  const choose = pictureTile(picture, pressed, () => stage.show(picture));
  const drop = button(element("span", {}, "×"), () => removePicture(picture), {
    class: "plain drop",
    "aria-label": `Remove ${picture.name}`,
  });
  return element("li", {}, choose, drop);
}

/** A button with a small picture and its prediction in few words. */
export function pictureTile(picture, pressed, choose) {
  const { answer, problem } = picture;
  const says = problem === null ? (answer === null ? [] : shortParts(answer)) : ["Left out"];
  const image = element("span", { class: "thumb" });
  picture.tile.then((canvas) => image.append(canvas ?? element("span", { class: "muted small" }, "No preview")));
  const tile = button(image, choose, { class: "tile", "aria-pressed": String(pressed), title: problem });
  tile.append(element("span", { class: "sr" }, `${isolated(picture.name)}: `));
  tile.append(element("span", { class: problem === null ? "caption" : "caption problem" }, ...says));
  return tile;
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
  const items = newest.map((entry) => ({ key: entry.id, state: [entry.name, entry.n_examples, entry.sign], entry }));
  showList(byId("known-classes"), items, classRow);
}

function classRow({ entry }) {
  const choose = () => {
    setName(entry.name);
    byId("take").focus();
  };
  const title = `Use the name ${isolated(entry.name)}`;
  const row = button(named(entry.name), choose, { class: "class-row", title });
  const n = entry.n_examples;
  const shown = element("span", { class: "row muted" }, dots(n), counted(n, "picture"));
  row.append(shown, badge(entry));
  return element("li", {}, row);
}
