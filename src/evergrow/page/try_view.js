/** The view to ask in: what is shown here is only predicted, never kept. */

import { AnswerPanel } from "./answer.js";
import { connection } from "./connection.js";
import { byId, element, showList } from "./dom.js";
import { LivePredictions } from "./live_predictions.js";
import { setName } from "./name_form.js";
import { announce } from "./notifications.js";
import { isOnlyClass, predictionText } from "./prediction_text.js";
import { Stage } from "./stage.js";
import { pictureTile } from "./teach_view.js";
import { problemText, tray, tried } from "./tray.js";
import { workspace } from "./workspace.js";

const stage = new Stage("try-");
const panel = new AnswerPanel(byId("try-answer"));
const live = new LivePredictions(stage.camera, () => stage.usesCamera && !workspace.empty, showLive);

let hasFrame = false;
// The picture whose prediction was announced, and what was said of it, without its probability.
let announced = { picture: null, said: "" };

export const tryView = {
  enter() {
    stage.resume();
    live.start();
    show();
  },
  leave() {
    live.stop();
    stage.pause();
  },
};

export function startTryView() {
  byId("try-clear").addEventListener("click", () => {
    tried.clear();
    byId("try-title").focus();
  });
  byId("try-teach").addEventListener("click", () => {
    const { picture } = stage;
    // The last name was that of other pictures.
    setName("");
    tried.remove(picture);
    tray.restore([picture]);
    // After the view, which focuses its title.
    window.addEventListener("hashchange", () => byId("label").focus(), { once: true });
    location.hash = "#teach";
  });
  for (const kind of ["camera", "shown"]) {
    stage.addEventListener(kind, () => {
      hasFrame = false;
      show();
    });
  }
  for (const source of [workspace, connection, tried]) source.addEventListener("change", show);
  // What was asked last is what the user wants to know.
  tried.addEventListener("added", ({ detail: pictures }) => stage.show(pictures[0]));
  show();
}

function show() {
  const { pictures } = tried;
  if (stage.picture !== null && !pictures.includes(stage.picture)) stage.show(pictures[0] ?? null);
  byId("try-nothing").hidden = !workspace.empty || workspace.status === null;
  byId("try-answer").hidden = workspace.empty;
  byId("try-teach").hidden = stage.picture === null || stage.picture.problem !== null || !workspace.teaches;
  byId("try-clear").hidden = pictures.length === 0;
  byId("try-pictures").hidden = pictures.length < 2;
  const items = pictures.map((picture) => {
    const pressed = stage.picture === picture;
    return { key: picture.id, state: [pressed, picture.answer, picture.problem], picture, pressed };
  });
  showList(byId("try-pictures"), items, ({ picture, pressed }) =>
    element("li", {}, pictureTile(picture, pressed, () => stage.show(picture))),
  );
  showAnswer();
}

function showAnswer() {
  const { picture } = stage;
  if (picture === null) {
    if (!stage.usesCamera) panel.clear("Use the camera, or drop, paste or choose pictures. Nothing you show here is kept.");
    else if (!hasFrame) panel.clear("Looking …");
    return;
  }
  if (picture.problem !== null) panel.clear(problemText([picture]), { bad: true });
  else if (picture.answer === null) {
    panel.clear(connection.online ? "Looking …" : "No prediction while the service cannot be reached.");
  } else {
    panel.show(picture.answer);
    announceAnswer(picture);
  }
}

/** Announces a prediction once, and again if another one has taken its place. */
function announceAnswer(picture) {
  const { known, label, fine } = picture.answer;
  const said = JSON.stringify([isOnlyClass(picture.answer), known, label, fine]);
  if (announced.picture !== picture || announced.said !== said) announce(predictionText(picture.answer));
  announced = { picture, said };
}

function showLive(image, answer) {
  hasFrame = true;
  panel.show(answer, { live: true });
}
