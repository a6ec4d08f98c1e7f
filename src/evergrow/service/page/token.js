/** The token of this tab, kept until the tab is closed and sent only to this origin. */

const STORAGE_KEY = "evergrow-token";

// Without storage the token is kept in memory until the page is closed.
let current = read();

/** Fires "refused", with the message to show, when the service rejects the token. */
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
    // Several requests may fail together; the first one has already asked for another token.
    if (current === null) return;
    this.forget();
    this.dispatchEvent(new CustomEvent("refused", { detail: reason }));
  }
})();

function read() {
  try {
    return sessionStorage.getItem(STORAGE_KEY);
  } catch {
    return null;
  }
}

function write(value) {
  try {
    if (value === null) sessionStorage.removeItem(STORAGE_KEY);
    else sessionStorage.setItem(STORAGE_KEY, value);
  } catch {
    // It is only in memory.
  }
}

/** The token in the fragment of an address, as in #token=…; null if there is none. */
export function tokenOfAddress(fragment) {
  const text = /^#token=(.*)$/.exec(fragment)?.[1];
  return text !== undefined && looksLikeToken(text) ? text : null;
}

/** Whether the text fits into a header, as every token does. */
export function looksLikeToken(text) {
  return /^[\x21-\x7e]{1,512}$/.test(text);
}
