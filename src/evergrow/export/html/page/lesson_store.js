/**
 * Stores what was taught in this browser, by page. Pages that are opened from disk may share one database,
 * and a browser may refuse to store anything: then everything stays in memory.
 */

import { BrowserTable } from "./browser_table.js";

const changesTable = new BrowserTable("evergrow-pages", "changes", ["page", "event"]);

const rangeOf = (page) => IDBKeyRange.bound([page, 0], [page, Infinity]);

/** The stored changes of a page, oldest first; null if the browser stores nothing. */
export async function listChanges(page) {
  try {
    return await changesTable.transact("readonly", (table) => table.getAll(rangeOf(page)));
  } catch {
    return null;
  }
}

/** Stores a change; resolves to whether the browser did. */
export async function putChange(page, change) {
  try {
    // Lessons that a change took away are stored with the change that taught them.
    await changesTable.transact("readwrite", (table) => table.put({ ...change, gone: undefined, page }));
    return true;
  } catch {
    return false;
  }
}

/** Removes changes that were undone. */
export async function removeChanges(page, changes) {
  try {
    await changesTable.transact("readwrite", (table) => {
      for (const { event } of changes) table.delete([page, event]);
    });
  } catch {
    // They were not stored either.
  }
}
