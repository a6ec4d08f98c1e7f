/** Pictures that are dropped on the page, pasted into it or chosen from files. */

import { newKey } from "./api.js";
import { ask } from "./dialogs.js";
import { byFolder, isPicture, readEntries } from "./folders.js";
import { agreeOnName } from "./name_check.js";
import { notify } from "./notifications.js";
import { byId, element, fill, named } from "./dom.js";
import { teachPicture } from "./taught_pictures.js";
import { counted, isolated } from "./text.js";
import { sendable, tray, tried } from "./tray.js";
import { workspace } from "./workspace.js";

// A folder dropped by mistake must not fill the memory of a phone.
const MAX_PICTURES = 500;
const MAX_LISTED = 8;
const VIEW_OF_INPUT = { files: "teach", "review-files": "review", "try-files": "try" };

/**
 * @param {() => {view: string, label: string|null}|null} place the view that is shown, and the class
 *   on the page of a class; null before the token is entered
 */
export function startFileInput(place) {
  startDropping(place);
  document.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files ?? [];
    if (place() === null || files.length === 0) return;
    event.preventDefault();
    take([...files], place());
  });
  for (const [id, view] of Object.entries(VIEW_OF_INPUT)) {
    onFiles(id, (files) => take(files, { view, label: null }));
  }
  onFiles("class-files", (files) => {
    // The class may be gone since the dialog of files was opened.
    const label = place()?.label ?? null;
    if (label === null) notify("bad", "This class no longer exists.");
    else teachFiles(pictures(files, MAX_PICTURES), label);
  });
}

function onFiles(id, use) {
  const input = byId(id);
  input.addEventListener("change", () => {
    const files = [...input.files];
    // So that choosing the same file again fires an event.
    input.value = "";
    use(files);
  });
}

function startDropping(place) {
  let depth = 0;
  const carriesFiles = (event) => place() !== null && event.dataTransfer?.types.includes("Files");
  const over = (shown) => {
    if (shown) fill(byId("drop-text"), ...dropText(place()));
    byId("drop").hidden = !shown;
  };
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
    if (carriesFiles(event)) takeDropped(event.dataTransfer, place());
  });
}

function dropText({ view, label }) {
  if (view === "try" || !workspace.teaches) return ["Drop pictures to try them"];
  if (label !== null) return ["Drop pictures to add them to ", named(label)];
  return ["Drop pictures to add them, or a folder of each class"];
}

async function takeDropped(data, place) {
  // Entries are gone after the event, so they are asked for first.
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry);
  const files = [...data.files];
  if (!entries.some((entry) => entry.isDirectory)) {
    take(files, place);
    return;
  }
  let read;
  try {
    read = await readEntries(entries, MAX_PICTURES + 1);
  } catch (error) {
    notify("bad", `The folder cannot be read: ${error.message}`);
    return;
  }
  reportSkipped(read.others);
  takeFolders(byFolder(firstOf(read.found, MAX_PICTURES)), place);
}

/** Asks once whether folders are classes. */
async function takeFolders(folders, place) {
  const files = [...folders.values()].flat();
  const names = [...folders.keys()].filter((folder) => folder !== null);
  const teaching = place.view !== "try" && workspace.teaches;
  if (files.length === 0 || !teaching || names.length === 0) {
    take(files, place);
    return;
  }
  const nNamed = files.length - (folders.get(null)?.length ?? 0);
  const answer = await ask({
    title: names.length === 1 ? "Is the folder a class?" : "Are the folders classes?",
    text: ["Each picture is taught under the name of its folder:"],
    content: [folderList(names, folders)],
    accept: `Teach ${counted(nNamed, "picture")}`,
    other: "Add without names",
  });
  if (answer === null) return;
  if (answer.other) take(files, place);
  else await teachFolders(names, folders, place);
}

function folderList(names, folders) {
  const items = names.slice(0, MAX_LISTED).map((name) => {
    return element("li", {}, named(name), `: ${counted(folders.get(name).length, "picture")}`);
  });
  const rest = names.length - MAX_LISTED;
  return element("ul", {}, ...items, rest > 0 && element("li", {}, `and ${rest} more`));
}

/** Teaches the pictures of all folders as one step of undo. */
async function teachFolders(names, folders, place) {
  const labels = new Map();
  for (const name of names) {
    const label = await agreeOnName(name.trim());
    if (label === null) return;
    labels.set(name, label);
  }
  const action = newKey();
  for (const [name, label] of labels) await teachFiles(folders.get(name), label, action);
  if (folders.has(null)) take(folders.get(null), place);
}

async function teachFiles(files, label, action = newKey()) {
  for (const file of files) teachPicture({ image: await sendable(file), label, action });
}

/** Puts pictures where they belong on the view that is shown. */
async function take(files, { view, label }) {
  const trying = view === "try" || !workspace.teaches;
  const list = trying ? tried : tray;
  const added = pictures(files, MAX_PICTURES - list.pictures.length);
  if (added.length === 0) return;
  if (!trying && label !== null) {
    await askToAdd(added, label);
    return;
  }
  list.add(added);
  if (trying) location.hash = "#try";
  else if (view !== "review") location.hash = "#teach";
}

/** Pictures dropped on the page of a class. */
async function askToAdd(files, label) {
  const answer = await ask({
    title: "Add pictures?",
    text: [`${counted(files.length, "picture")} will be taught as `, named(label), "."],
    accept: "Add",
  });
  if (answer !== null) await teachFiles(files, label);
}

/** The pictures among files, `room` at most; says which were left out. */
function pictures(files, room) {
  const found = files.filter(isPicture);
  reportSkipped(files.filter((file) => !isPicture(file)).map((file) => file.name));
  return firstOf(found, room);
}

function reportSkipped(names) {
  if (names.length === 1) notify("bad", `${isolated(names[0])} skipped: not a picture.`);
  if (names.length > 1) notify("bad", `${names.length} files skipped: not pictures.`);
}

function firstOf(found, room) {
  if (found.length > room) {
    notify("bad", `At most ${MAX_PICTURES} pictures at a time: the first ${room} were added. For more, use evergrow learn.`);
  }
  return found.slice(0, room);
}
