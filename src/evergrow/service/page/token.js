/** The token of this tab. It is gone when the tab is closed and never leaves this origin. */

const PLACE = "evergrow-token";

// A browser that refuses storage still keeps the token until the page is left.
let current = read();

/** Fires "refused" with the sentence to show when the service does not take the token. */
export const token = new (class Token extends EventTarget {
  get value() {
    return current;
  }

  set(value) {
    current = value;
    write(value);
  }

  forget() {
    current = null;
    write(null);
  }

  refuse(reason) {
    // Several answers may come back at once; the first one has already asked for another token.
    if (current === null) return;
    this.forget();
    this.dispatchEvent(new CustomEvent("refused", { detail: reason }));
  }
})();

function read() {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null;
  }
}

function write(value) {
  try {
    if (value === null) sessionStorage.removeItem(PLACE);
    else sessionStorage.setItem(PLACE, value);
  } catch {
    // Kept in memory only.
  }
}

/** Whether a header can carry the text; anything else cannot be a token. */
export function looksLikeToken(text) {
  return /^[\x21-\x7e]{1,512}$/.test(text);
}
