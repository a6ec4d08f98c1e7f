/** What can be downloaded, and what is said about it. */

import { counted } from "./text.js";

const NOTHING = "Nothing has been taught yet.";

/**
 * The files of a workspace: `file` as the service calls it, and `refused`, why there is none yet.
 *
 * @param {{n_examples: number, n_classes: number, takes_images: boolean, event: number}} status
 */
export function downloadFiles(status) {
  const taught = status.n_examples > 0 ? null : NOTHING;
  const ofPictures = status.takes_images ? taught : "This workspace was taught numbers, not pictures.";
  const examples = `${counted(status.n_examples, "example")} of ${counted(status.n_classes, "class", "classes")}`;
  return [
    {
      file: "model",
      title: "Model file",
      about: "For Evergrow in Python, where it learns more.",
      refused: taught,
    },
    {
      file: "html",
      title: "Web page",
      about: "Answers and learns in any browser, offline.",
      refused: ofPictures,
    },
    { file: "onnx", title: "ONNX", about: "For apps: from a picture to its class.", refused: taught },
    {
      file: "pictures",
      title: "Pictures",
      about: "A zip file: a folder for each class, and a table.",
      refused: ofPictures,
    },
    { file: "labels", title: "Labels", about: `A table (CSV) of ${examples}.`, refused: taught },
    {
      file: "audit-log",
      title: "Audit log",
      about: "Every change, when and by whom.",
      refused: status.event > 0 ? null : NOTHING,
    },
  ];
}

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** A size with two digits or more, such as "1.4 MB". */
export function fileSize(bytes) {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** What is said once the browser saves a file. */
export function savedText({ name, n_bytes: bytes }) {
  const size = bytes === null ? "" : ` (${fileSize(bytes)})`;
  return `Your browser saves ${name}${size}.`;
}
