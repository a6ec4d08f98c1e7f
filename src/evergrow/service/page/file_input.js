/** Pictures that are dropped on the page, pasted into it or chosen from files. */

import { notify } from "./notifications.js";
import { byId } from "./dom.js";
import { counted } from "./text.js";
import { tray } from "./tray.js";

// A folder dropped by mistake must not fill the memory of a phone.
const MAX_PICTURES = 500;

function take(files) {
  const pictures = [...files].filter((file) => file.type.startsWith("image/"));
  const others = files.length - pictures.length;
  if (others > 0) notify("bad", `${counted(others, "file")} skipped: not a picture.`);
  const room = MAX_PICTURES - tray.pictures.length;
  if (pictures.length > room) {
    notify("bad", `At most ${MAX_PICTURES} pictures can wait here; the first ${room} were added.`);
  }
  const added = pictures.slice(0, room);
  if (added.length === 0) return;
  tray.add(added);
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
    // Otherwise the browser would open the file instead of the page.
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
      // So that choosing the same file again fires an event.
      input.value = "";
    });
  }
}
