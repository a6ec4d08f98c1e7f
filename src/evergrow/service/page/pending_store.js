/** Taught pictures that are not acknowledged yet, stored by the browser in case the tab is closed. */

import { BrowserTable } from "./browser_table.js";

const DATABASE = "evergrow";
const lessons = new BrowserTable(DATABASE, "lessons", "key");

/** Stores an example; resolves to false if the browser refuses, so that it is only in memory. */
export async function put(example) {
  try {
    await lessons.transact("readwrite", (table) => table.put(example));
    return true;
  } catch {
    return false;
  }
}

export async function remove(key) {
  try {
    await lessons.transact("readwrite", (table) => table.delete(key));
  } catch {
    // If it is sent again later, the service recognises its key.
  }
}

/** Whether an example is still stored: another tab may have sent or withdrawn it. */
export async function has(key) {
  try {
    return (await lessons.transact("readonly", (table) => table.getKey(key))) !== undefined;
  } catch {
    // Sent in case of doubt: its key prevents that it is taught twice.
    return true;
  }
}

/** Locks an example against other tabs; pages over plain http have no locks. */
export function withLock(key, work) {
  return navigator.locks ? navigator.locks.request(`${DATABASE}-${key}`, work) : work();
}

/** The examples for one workspace, oldest first. */
export async function list(workspace) {
  try {
    const examples = await lessons.transact("readonly", (table) => table.getAll());
    return examples
      .filter((example) => example.workspace === workspace)
      .sort((one, other) => one.number - other.number);
  } catch {
    return [];
  }
}
