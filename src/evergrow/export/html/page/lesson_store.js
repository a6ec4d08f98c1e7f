/**
 * Stores what was taught in this browser, by page. Pages that are opened from disk may share one database,
 * and a browser may refuse to store anything: then everything stays in memory.
 */

const DATABASE = "evergrow-pages";
const TABLE = "changes";

let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE, { keyPath: ["page", "event"] });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function transact(mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(TABLE, mode);
    const request = work(transaction.objectStore(TABLE));
    transaction.oncomplete = () => resolve(request?.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

const rangeOf = (page) => IDBKeyRange.bound([page, 0], [page, Infinity]);

/** The stored changes of a page, oldest first; null if the browser stores nothing. */
export async function listChanges(page) {
  try {
    return await transact("readonly", (table) => table.getAll(rangeOf(page)));
  } catch {
    return null;
  }
}

/** Stores a change; resolves to whether the browser did. */
export async function putChange(page, change) {
  try {
    // Lessons that a change took away are stored with the change that taught them.
    await transact("readwrite", (table) => table.put({ ...change, gone: undefined, page }));
    return true;
  } catch {
    return false;
  }
}

/** Removes changes that were undone. */
export async function removeChanges(page, changes) {
  try {
    await transact("readwrite", (table) => {
      for (const { event } of changes) table.delete([page, event]);
    });
  } catch {
    // They were not stored either.
  }
}
