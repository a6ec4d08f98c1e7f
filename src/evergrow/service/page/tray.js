/**
 * Pictures that were dropped, chosen or pasted and have no name yet; fires "change" and "added".
 * They are only in this page: what is taught of them goes to the service, the rest is forgotten.
 */

import { expectProblem, predict, Problem } from "./api.js";
import { connection } from "./connection.js";
import { knowledge } from "./knowledge.js";

// Small enough to answer soon, large enough not to ask for every picture.
const AT_ONCE = 8;
// What the form around the pictures takes is little, but not nothing.
const SHARE = 0.9;
// Twice the size of a tile, for sharp screens.
const TILE = 240;
const LARGE = 1280;
// As many as there are number keys to choose with.
const CHOICES = 9;

class Tray extends EventTarget {
  #pictures = [];
  #number = 0;
  #asking = false;

  constructor() {
    super();
    connection.addEventListener("change", () => this.#ask());
    knowledge.addEventListener("change", () => this.#ask());
  }

  get pictures() {
    return this.#pictures;
  }

  async add(files) {
    const pictures = files.map((file) => ({
      id: (this.#number += 1),
      image: file,
      name: file.name ?? "picture",
      // Of the whole picture there is no copy: hundreds of them would fill the memory of a phone.
      tile: inTurn(() => drawn(file, TILE)),
      answer: null,
      problem: null,
      // The answer is as old as the knowledge it came from.
      moment: null,
    }));
    this.#pictures.push(...pictures);
    this.#changed();
    this.dispatchEvent(new CustomEvent("added", { detail: pictures }));
    await this.#ask();
  }

  remove(picture) {
    this.#pictures = this.#pictures.filter((other) => other !== picture);
    this.#changed();
  }

  /** Brings a picture back whose teaching was undone or refused. */
  giveBack(picture) {
    if (this.#pictures.includes(picture)) return;
    this.#pictures.unshift(picture);
    this.#changed();
    this.#ask();
  }

  clear() {
    this.#pictures = [];
    this.#changed();
  }

  /** Asks about pictures without an answer, and again about those answered before the last change. */
  async #ask() {
    if (this.#asking || knowledge.empty || !connection.online) return;
    this.#asking = true;
    try {
      for (;;) {
        const { moment } = knowledge;
        const some = fewOf(this.#pictures.filter((one) => one.problem === null && one.moment !== moment));
        if (some.length === 0) break;
        await askAbout(some, moment);
        this.#changed();
      }
    } catch (error) {
      expectProblem(error);
    } finally {
      this.#asking = false;
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** As many as one question can carry, and one in any case. */
function fewOf(pictures) {
  const { max_request_bytes: room, max_images: places } = knowledge.status;
  const first = pictures.slice(0, Math.min(AT_ONCE, places));
  let size = 0;
  const fitting = first.filter(({ image }) => {
    size += image.size;
    return size < SHARE * room;
  });
  return fitting.length > 0 ? fitting : first.slice(0, 1);
}

async function askAbout(pictures, moment) {
  try {
    const answers = await predict(pictures.map((picture) => picture.image), CHOICES);
    pictures.forEach((picture, i) => Object.assign(picture, { answer: answers[i], moment }));
  } catch (error) {
    if (!(error instanceof Problem) || error.passing || error.status === 401) throw error;
    // One bad picture spoils the question for all; alone, it shows itself.
    if (pictures.length === 1) pictures[0].problem = error.message;
    else for (const picture of pictures) await askAbout([picture], moment);
  }
}

/** A small canvas of the picture, or null for what the browser cannot show. */
async function drawn(file, side) {
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

let turn = Promise.resolve();

/** One after the other: decoded at once, a hundred photographs would need gigabytes. */
function inTurn(work) {
  turn = turn.then(work);
  return turn;
}

/** The picture large enough to look at. */
export async function largeOf(picture) {
  return (await drawn(picture.image, LARGE)) ?? document.createElement("canvas");
}

export const tray = new Tray();
