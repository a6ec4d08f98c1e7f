/** Pictures that are dropped on the page, pasted into it or chosen from files. */

import { notify } from "./notifications.js";
import { byId } from "./dom.js";
import { counted } from "./text.js";
import { tray } from "./tray.js";

// A folder dropped by mistake must not fill the memory of a phone.
const MOST_PICTURES = 500;

function take(files) {
  const pictures = [...files].filter((file) => file.type.startsWith("image/"));
  const others = files.length - pictures.length;
  if (others > 0) notify("bad", `${counted(others, "file")} left out: not a picture.`);
  const room = MOST_PICTURES - tray.pictures.length;
  if (pictures.length > room) {
    notify("bad", `At most ${MOST_PICTURES} pictures can wait at once; the first ${room} were taken.`);
  }
  const taken = pictures.slice(0, room);
  if (taken.length === 0) return;
  tray.add(taken);
  if (location.hash !== "#review") location.hash = "#teach";
}

/** @param {() => boolean} welcome whether pictures are taken now */
export function startFileInput(welcome) {
  let depth = 0;
  const over = (shown) => document.body.classList.toggle("dropping", shown);
  const carriesFiles = (event) => welcome() && event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => {
    if (!carriesFiles(event)) return;
    depth += 1;
    over(true);
  });
  document.addEventListener("dragleave", (event) => {
    if (!carriesFiles(event)) return;
    depth = Math.max(0, depth - 1);
    if (depth === 0) over(false);
  });
  document.addEventListener("dragover", (event) => {
    if (carriesFiles(event)) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    depth = 0;
    over(false);
    // Without this the browser would leave the page for the file.
    event.preventDefault();
    if (carriesFiles(event)) take(event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files ?? [];
    if (!welcome() || files.length === 0) return;
    event.preventDefault();
    take(files);
  });
  for (const input of [byId("files"), byId("review-files")]) {
    input.addEventListener("change", () => {
      take(input.files);
      // The same file chosen again is a change again.
      input.value = "";
    });
  }
}
