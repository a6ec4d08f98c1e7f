/** Pictures that were dropped, chosen or pasted. They exist only in this page, until they are taught. */

import { expectProblem, predict, Problem } from "./api.js";
import { connection } from "./connection.js";
import { isolated } from "./text.js";
import { firstBatch } from "./upload_batch.js";
import { workspace } from "./workspace.js";

// Pixels: twice the size of a tile, for high-resolution screens.
const TILE_SIDE = 240;
const LARGE_SIDE = 1280;
// Pictures that cannot be used, and are named.
const MAX_NAMED = 3;
// As many as there are number keys.
const N_CHOICES = 9;
// What the service reads; pictures of other types are drawn again by the browser.
const SENT_AS_THEY_ARE = ["image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"];
// Pixels of a picture that is drawn again: more than any network needs.
const SENT_SIDE = 2048;
const JPEG_QUALITY = 0.92;

let nPictures = 0;

/** Fires "change", and "added" with the new pictures. */
class PictureList extends EventTarget {
  #pictures = [];
  #predicting = false;

  constructor() {
    super();
    connection.addEventListener("change", () => this.#predict());
    workspace.addEventListener("change", () => this.#predict());
  }

  get pictures() {
    return this.#pictures;
  }

  /** Those that the service can read. */
  get usable() {
    return this.#pictures.filter((picture) => picture.problem === null);
  }

  async add(files) {
    const images = await Promise.all(files.map(sendable));
    const pictures = files.map((file, i) => ({
      id: (nPictures += 1),
      image: images[i],
      name: file.name ?? "picture",
      // Only a small copy: hundreds of decoded pictures would fill the memory of a phone.
      tile: oneAtATime(() => draw(file, TILE_SIDE)),
      answer: null,
      problem: null,
      // Version of the model that made the prediction.
      version: null,
    }));
    this.#pictures.push(...pictures);
    this.#changed();
    this.dispatchEvent(new CustomEvent("added", { detail: pictures }));
    await this.#predict();
  }

  remove(picture) {
    this.#pictures = this.#pictures.filter((other) => other !== picture);
    this.#changed();
  }

  /** Removes those that the service cannot read. */
  removeUnusable() {
    this.#pictures = this.usable;
    this.#changed();
  }

  /** Adds pictures again whose teaching was undone or refused. */
  restore(pictures) {
    const gone = pictures.filter((picture) => !this.#pictures.includes(picture));
    if (gone.length === 0) return;
    this.#pictures.unshift(...gone);
    this.#changed();
    this.#predict();
  }

  clear() {
    this.#pictures = [];
    this.#changed();
  }

  /** Predicts new pictures, and again those whose prediction is older than the last change. */
  async #predict() {
    if (this.#predicting || workspace.empty || !connection.online) return;
    this.#predicting = true;
    try {
      for (;;) {
        const { version } = workspace;
        const outdated = this.#pictures.filter((one) => one.problem === null && one.version !== version);
        if (outdated.length === 0) break;
        await predictBatch(firstBatch(outdated, workspace.status), version);
        this.#changed();
      }
    } catch (error) {
      expectProblem(error);
    } finally {
      this.#predicting = false;
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

async function predictBatch(pictures, version) {
  try {
    const answers = await predict(pictures.map((picture) => picture.image), N_CHOICES);
    pictures.forEach((picture, i) => Object.assign(picture, { answer: answers[i], version }));
  } catch (error) {
    if (!(error instanceof Problem) || error.temporary || error.status === 401) throw error;
    // One bad picture fails the whole request; sent alone, it is found.
    if (pictures.length === 1) pictures[0].problem = error.message;
    else for (const picture of pictures) await predictBatch([picture], version);
  }
}

/** The file, or a JPEG of it if the service may not read its type but the browser does. */
export async function sendable(file) {
  if (SENT_AS_THEY_ARE.includes(file.type)) return file;
  const canvas = await oneAtATime(() => draw(file, SENT_SIDE));
  if (canvas === null) return file;
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(blob ?? file), "image/jpeg", JPEG_QUALITY));
}

/** A canvas with the picture, or null if the browser cannot show it. */
async function draw(file, side) {
  try {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * scale));
    canvas.height = Math.max(1, Math.round(bitmap.height * scale));
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    bitmap.close();
    return canvas;
  } catch {
    return null;
  }
}

let last = Promise.resolve();

/** Runs work one at a time: decoding a hundred photographs together would need gigabytes. */
function oneAtATime(work) {
  last = last.then(work);
  return last;
}

/** The picture large enough to look at. */
export async function largeOf(picture) {
  return (await draw(picture.image, LARGE_SIDE)) ?? document.createElement("canvas");
}

/** Which pictures are left out and why; empty if there are none. */
export function problemText(pictures) {
  const refused = pictures.filter((picture) => picture.problem !== null);
  const lines = refused.slice(0, MAX_NAMED).map(({ name, problem }) => `${isolated(name)} is left out. ${problem}`);
  const rest = refused.length - lines.length;
  return [...lines, ...(rest > 0 ? [`${rest} more are left out.`] : [])].join(" ");
}

/** Pictures to teach, which have no name yet. */
export const tray = new PictureList();
/** Pictures that are only asked about. */
export const tried = new PictureList();
