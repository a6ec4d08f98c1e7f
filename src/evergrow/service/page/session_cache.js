/** The last known state of the service, so that this tab still works after a reload offline. */

const KEY = "evergrow-known";
// Session storage holds a few megabytes.
const MAX_CLASSES = 2000;

export function save({ status, classes }) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ status, classes: classes.slice(-MAX_CLASSES) }));
  } catch {
    // Without it the page needs the service to open.
  }
}

export function load() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY));
  } catch {
    return null;
  }
}

export function clear() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was stored.
  }
}
