/** What this tab last knew, so that it can be taught after a reload without the service. */

const PLACE = "evergrow-known";
// Storage of a tab is a few megabytes.
const MOST_CLASSES = 2000;

export function keep({ status, classes }) {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ status, classes: classes.slice(-MOST_CLASSES) }));
  } catch {
    // Then the page opens only with the service.
  }
}

export function recall() {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE));
  } catch {
    return null;
  }
}

export function forget() {
  try {
    sessionStorage.removeItem(PLACE);
  } catch {
    // Nothing was kept.
  }
}
