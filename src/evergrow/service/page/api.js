/** Requests to the service, one function each. */

import { connection } from "./connection.js";
import { Problem, Unreachable } from "./problems.js";
import { sentence } from "./text.js";
import { token } from "./token.js";

export { expectProblem, Problem, Unreachable } from "./problems.js";

const PAGE_SIZE = 500;
// Enough for every class that a workspace accepts by default.
const MAX_PAGES = 20;
const UNAUTHORIZED = 401;
// Longer than the timeouts of the service, so that its own error message comes first.
const TIMEOUT_MS = 60_000;
const DOWNLOAD_MS = 600_000;

/**
 * A new idempotency key: a change that is sent twice with it is made once. Also a new action:
 * changes that follow each other with the same action are one step of undo.
 */
export function newKey() {
  // randomUUID is not available over plain http from another machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function request(path, options = {}) {
  const { method = "GET", query = {}, json, form, key, action, timeout = TIMEOUT_MS, bearer = token.value } = options;
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) url.searchParams.set(name, value);
  }
  const headers = { Authorization: `Bearer ${bearer}` };
  if (json !== undefined) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = key;
  if (action) headers["Evergrow-Action"] = action;
  const body = json === undefined ? form : JSON.stringify(json);
  let response;
  try {
    const signal = AbortSignal.timeout(timeout);
    response = await fetch(url, { method, headers, body, signal, credentials: "omit", redirect: "error" });
  } catch {
    connection.lost();
    throw new Unreachable();
  }
  connection.found();
  if (!response.ok) throw await readProblem(response, bearer);
  return response;
}

async function readProblem(response, bearer) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy may respond with a page of its own; its status is enough.
  }
  const message = sentence(body.detail || body.title || `the service responded with ${response.status}`);
  // A late response may be about a token that was replaced.
  if (response.status === UNAUTHORIZED && bearer === token.value) token.refuse(message);
  const pause = Number.parseFloat(response.headers.get("Retry-After"));
  const retryAfter = Number.isFinite(pause) ? pause : null;
  return new Problem(response.status, message, { retryAfter, label: body.label ?? null });
}

async function get(path, query) {
  return (await request(path, { query })).json();
}

async function change(path, json, method = "POST") {
  return (await request(path, { method, json, key: newKey() })).json();
}

async function getAllPages(path) {
  const items = [];
  let after;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await get(path, { limit: PAGE_SIZE, after });
    items.push(...answer.items);
    after = answer.next;
    if (after === null) break;
  }
  return items;
}

export const status = () => get("v1/status");
/** Fails unless the service accepts a token, which need not be the one of this tab. */
export const checkToken = (bearer) => request("v1/status", { bearer });
export const classes = () => getAllPages("v1/classes");
export const examples = (query) => get("v1/examples", query);
export const review = () => get("v1/review");
/** The confusion matrix of the classes with the most mistakes. */
export const confusion = (limit) => get("v1/confusion", { limit });
/** The pictures of one cell of the confusion matrix; null for `predicted` means unknown. */
export const confusionExamples = (label, predicted) => get("v1/confusion/examples", { label, predicted });
/** What an undo would take back. */
export const undoStep = () => get("v1/undo");

export const forget = (label) => change("v1/forget", { label });
export const rename = (label, to) => change("v1/rename", { label, to });
export const merge = (label, into) => change("v1/merge", { label, into });
export const split = (label) => change("v1/split", { label });
export const unsplit = (label) => change("v1/unsplit", { label });
export const undo = (event) => change("v1/undo", { event });
export const relabel = (id, names) => change(`v1/examples/${id}`, names, "PATCH");
/** Several examples in one change, with one undo. */
export const relabelAll = (examples, names) => change("v1/relabel", { examples, ...names });
export const removeAll = (examples) => change("v1/remove", { examples });

/** @param {object} example with `move`, a picture of another class is moved to this one */
export async function teach({ image, label, fine, key, action, move }) {
  const form = new FormData();
  form.append("image", image, "picture");
  form.append("label", label);
  if (fine) form.append("fine", fine);
  if (move) form.append("move", "true");
  return (await request("v1/examples", { method: "POST", form, key, action })).json();
}

/** The predictions for several pictures. */
export async function predict(images, top = 5) {
  const form = new FormData();
  for (const image of images) form.append("image", image, "picture");
  const answer = await request("v1/predictions", { method: "POST", form, query: { top } });
  return (await answer.json()).predictions;
}

/** Prepares a file, and returns a link to it that is valid once: {ticket, name, n_bytes}. */
export async function prepareDownload(file) {
  return (await request("v1/downloads", { method: "POST", json: { file }, timeout: DOWNLOAD_MS })).json();
}

/** Where the browser finds a prepared file, without the token. */
export function downloadAddress(ticket) {
  return new URL(`v1/downloads/${ticket}`, document.baseURI).href;
}

export async function thumbnail(id) {
  return (await request(`v1/examples/${id}/thumbnail`)).blob();
}

export async function picture(id) {
  return (await request(`v1/examples/${id}/image`)).blob();
}
