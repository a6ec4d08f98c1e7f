/** The state of this page: what was taught, in memory, in the browser's storage and in the file. */

import * as engine from "./engine.js";
import { listChanges, putChange, removeChanges } from "./lesson_store.js";
import { Lessons } from "./lessons.js";
import { toBase64, withBlock } from "./payload.js";
import { groupLessons, lessonsFile } from "./lessons_file.js";
import { writeTensors } from "./tensors.js";

class PageState extends EventTarget {
  /** The id of this page; a saved page has one of its own. */
  page = null;
  lessons = new Lessons();
  /** Whether the browser stores what is taught. */
  stores = true;
  /** Whether something was taught that neither a saved file nor the browser has. */
  unsaved = false;
  #file = null;
  #last = Promise.resolve();

  /** Reads the file and what the browser has stored, and starts the model. */
  async open() {
    const { bytes, facts, arrays } = await engine.readModel();
    this.#file = { facts, arrays };
    this.page = facts.page;
    const changes = await listChanges(this.page);
    this.stores = changes !== null;
    this.lessons = new Lessons(fileLessons(facts, arrays), changes ?? []);
    await engine.loadModel(bytes, this.lessons.all);
  }

  /**
   * Makes a change, one after the other: in the model, in the lessons, in the storage.
   *
   * @param {(lessons: Lessons) => object | null} decide returns the change, or null for none; it sees all
   *   changes before it, so that two of a moment differ in their numbers
   */
  change(decide) {
    return this.#inTurn(async () => {
      const made = decide(this.lessons);
      if (made === null) return null;
      const work = this.lessons.apply(made);
      // The browser writes while the model learns.
      const storing = putChange(this.page, made);
      await engine.doWork(work);
      await this.#keep(storing);
      return made;
    });
  }

  undo() {
    return this.#inTurn(async () => {
      const { changes, work } = this.lessons.undo();
      await engine.doWork(work);
      await removeChanges(this.page, changes);
    });
  }

  async #keep(storing) {
    if (await storing) return;
    this.unsaved = true;
    // Later ones may be stored, but this one is not.
    this.stores = false;
    this.dispatchEvent(new Event("change"));
  }

  #inTurn(work) {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  /** This page as a file, with everything that was taught. */
  async saved(page) {
    const { facts, arrays } = this.#file;
    const all = this.lessons.all;
    const size = all[0]?.embedding.length ?? 0;
    const embeddings = new Float32Array(all.length * size);
    all.forEach(({ embedding }, i) => embeddings.set(embedding, i * size));
    const pictures = new Uint8Array(await new Blob(all.map(({ image }) => image)).arrayBuffer());
    const entries = all.map(({ key, label, sha256, at, width, height, action, image }) => {
      return { key, label, sha256, at, width, height, action, type: image.type, size: image.size };
    });
    const content = writeTensors(
      { ...facts, page, lessons: entries },
      {
        ...arrays,
        lesson_embeddings: { shape: [all.length, size], values: embeddings },
        lesson_pictures: { shape: [pictures.length], values: pictures },
      },
    );
    const file = await withBlock("model", content);
    this.unsaved = false;
    return file;
  }

  /** The lessons as files for `evergrow learn`: several if one would be too large. */
  async *lessonsFiles() {
    for (const group of groupLessons(this.lessons.all)) {
      const lessons = [];
      for (const lesson of group) lessons.push({ ...lesson, picture: await toBase64(lesson.image) });
      yield new Blob(lessonsFile(this.page, lessons), { type: "application/json" });
    }
  }
}

/** The lessons that a saved page contains. */
function fileLessons({ lessons }, { lesson_embeddings: embeddings, lesson_pictures: pictures }) {
  if (lessons === undefined) return [];
  let at = 0;
  return lessons.map(({ size, type, ...lesson }, i) => {
    const length = embeddings.shape[1];
    const image = new Blob([pictures.values.slice(at, at + size)], { type });
    at += size;
    return { ...lesson, image, embedding: embeddings.values.slice(i * length, (i + 1) * length) };
  });
}

export const state = new PageState();
