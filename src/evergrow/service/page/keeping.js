/** Taught pictures that were not acknowledged yet, kept by the browser over a closed tab. */

const DATABASE = "evergrow";
const LESSONS = "lessons";

let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const asked = indexedDB.open(DATABASE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(LESSONS, { keyPath: "key" });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
  return opened;
}

async function withLessons(mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(LESSONS, mode);
    const asked = work(transaction.objectStore(LESSONS));
    transaction.oncomplete = () => resolve(asked.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** Whether it was kept; a browser may refuse, and then memory is all there is. */
export async function keep(lesson) {
  try {
    await withLessons("readwrite", (lessons) => lessons.put(lesson));
    return true;
  } catch {
    return false;
  }
}

export async function drop(key) {
  try {
    await withLessons("readwrite", (lessons) => lessons.delete(key));
  } catch {
    // Sent again later, it is recognised by its key.
  }
}

/** Whether a lesson is still there: another tab may have sent or withdrawn it. */
export async function isKept(key) {
  try {
    return (await withLessons("readonly", (lessons) => lessons.getKey(key))) !== undefined;
  } catch {
    // What cannot be looked up is sent: its key keeps it from being taught twice.
    return true;
  }
}

/** Does something with a lesson while no other tab does; pages over plain http take their chance. */
export function alone(key, work) {
  return navigator.locks ? navigator.locks.request(`${DATABASE}-${key}`, work) : work();
}

/** Lessons for this workspace, oldest first. */
export async function kept(workspace) {
  try {
    const lessons = await withLessons("readonly", (all) => all.getAll());
    return lessons
      .filter((lesson) => lesson.workspace === workspace)
      .sort((one, other) => one.number - other.number);
  } catch {
    return [];
  }
}
