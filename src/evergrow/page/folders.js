/** Folders that are dropped on the page: one of a class, or one that holds a folder of each class. */

// Archives made on a Mac have it next to the real folders.
const SKIPPED = "__MACOSX";
// Endings of what the service reads: browsers do not know the type of all of them.
const PICTURE = /\.(jpg|jpeg|jpe|jfif|mpo|png|webp|bmp|gif|tif|tiff|ppm|pgm|pbm|pnm|avif|heic|heif|hif)$/i;

export function isPicture({ name, type }) {
  return type.startsWith("image/") || PICTURE.test(name);
}

/**
 * Reads dropped entries, also those inside folders.
 *
 * @param {Array<FileSystemEntry>} entries
 * @param {number} most stops after so many pictures
 * @returns {Promise<{found: Array<{file: File, folder: string|null}>, others: Array<string>}>} the
 *   pictures with the folder of their class, and the names of other files
 */
export async function readEntries(entries, most) {
  const read = { found: [], others: [], most };
  for (const entry of entries.filter(isRead)) {
    const first = read.found.length;
    await collect(entry, [], read);
    nameClasses(entry, read.found.slice(first));
  }
  return { found: read.found, others: read.others };
}

function isRead({ name }) {
  return !name.startsWith(".") && name !== SKIPPED;
}

/** @param {Array<string>} path the folders between the dropped one and the entry */
async function collect(entry, path, read) {
  if (read.found.length >= read.most) return;
  if (entry.isDirectory) {
    for (const child of await children(entry)) {
      await collect(child, child.isDirectory ? [...path, child.name] : path, read);
    }
    return;
  }
  const file = await fileOf(entry);
  if (isPicture(file)) read.found.push({ file, path });
  else read.others.push(file.name);
}

/** Names the class of each picture: the first folder below the dropped one, or that itself if it has none. */
function nameClasses({ name, isDirectory }, found) {
  const isClass = isDirectory && found.every(({ path }) => path.length === 0);
  for (const picture of found) picture.folder = isClass ? name : (picture.path[0] ?? null);
}

/** The entries of a folder: folders first, which say whether it is a class, then by name. */
async function children(folder) {
  const reader = folder.createReader();
  const all = [];
  for (;;) {
    // A reader gives them in parts.
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) break;
    all.push(...part.filter(isRead));
  }
  const order = (one, other) => other.isDirectory - one.isDirectory || (one.name < other.name ? -1 : 1);
  return all.sort(order);
}

function fileOf(entry) {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** Files by folder, in the order of reading. */
export function byFolder(found) {
  const folders = new Map();
  for (const { file, folder } of found) folders.set(folder, [...(folders.get(folder) ?? []), file]);
  return folders;
}
