/** The service, one function per thing the page asks of it. */

import { connection } from "./connection.js";
import { token } from "./token.js";

const PAGE_SIZE = 500;
// Enough for every class a workspace takes by default.
const MOST_PAGES = 20;
const EVENTS = 50;
const UNAUTHORIZED = 401;
const FAILURES = [500, 502, 504];
// Longer than the service takes to refuse, so that its own words come first.
const PATIENCE = 60_000;

/** The service said no, and why. */
export class Problem extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get passing() {
    return this.status >= 500 || this.status === 429 || this.status === 408;
  }

  /** Whether the service, or one before it, failed when it may already have done what was asked. */
  get uncertain() {
    return FAILURES.includes(this.status);
  }
}

/** No answer came. */
export class Unreachable extends Error {
  constructor() {
    super("The service cannot be reached.");
  }

  get passing() {
    return true;
  }

  get uncertain() {
    return true;
  }
}

/** Throws on what is neither said by the service nor a lost way to it: that is a mistake of this page. */
export function expectProblem(error) {
  if (!(error instanceof Problem) && !(error instanceof Unreachable)) throw error;
}

/** Stands for one request, so that sending it twice does what sending it once does. */
export function newKey() {
  // randomUUID is missing where the page comes over plain http from another machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function request(path, { method = "GET", query = {}, json, form, key } = {}) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) url.searchParams.set(name, value);
  }
  const headers = { Authorization: `Bearer ${token.value}` };
  if (json !== undefined) headers["Content-Type"] = "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = key;
  const body = json === undefined ? form : JSON.stringify(json);
  let response;
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    response = await fetch(url, { method, headers, body, signal, credentials: "omit", redirect: "error" });
  } catch {
    connection.lost();
    throw new Unreachable();
  }
  connection.found();
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  let told = {};
  try {
    told = await response.json();
  } catch {
    // A proxy may answer with a page of its own; its status says enough.
  }
  const message = sentence(told.detail || told.title || `the service answered ${response.status}`);
  if (response.status === UNAUTHORIZED) token.refuse(message);
  const pause = Number.parseFloat(response.headers.get("Retry-After"));
  return new Problem(response.status, message, Number.isFinite(pause) ? pause : null);
}

/** Programs get a clause; people get a sentence. */
function sentence(told) {
  const text = String(told);
  const end = /[.!?…]$/.test(text) ? "" : ".";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${end}`;
}

async function get(path, query) {
  return (await request(path, { query })).json();
}

async function change(path, json, method = "POST") {
  return (await request(path, { method, json, key: newKey() })).json();
}

async function everyPage(path) {
  const items = [];
  let after;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await get(path, { limit: PAGE_SIZE, after });
    items.push(...answer.items);
    after = answer.next;
    if (after === null) break;
  }
  return items;
}

export const status = () => get("v1/status");
export const classes = () => everyPage("v1/classes");
export const examples = (query) => get("v1/examples", query);
export const review = () => get("v1/review");
export const confusion = () => get("v1/confusion");

/** The newest event that fits, or null. */
export async function newestEvent(fits) {
  let after;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { items, next } = await get("v1/events", { limit: EVENTS, after });
    const found = items.find(fits);
    if (found !== undefined) return found;
    if (next === null) break;
    after = next;
  }
  return null;
}

export const forget = (label) => change("v1/forget", { label });
export const rename = (label, to) => change("v1/rename", { label, to });
export const merge = (label, into) => change("v1/merge", { label, into });
export const split = (label) => change("v1/split", { label });
export const unsplit = (label) => change("v1/unsplit", { label });
export const undo = (event) => change("v1/undo", { event });
export const relabel = (id, names) => change(`v1/examples/${id}`, names, "PATCH");
/** Several examples as one change, which is undone at once. */
export const relabelAll = (examples, names) => change("v1/relabel", { examples, ...names });
export const removeAll = (examples) => change("v1/remove", { examples });

export async function teach({ image, label, fine, key }) {
  const form = new FormData();
  form.append("image", image, "picture");
  form.append("label", label);
  if (fine) form.append("fine", fine);
  return (await request("v1/examples", { method: "POST", form, key })).json();
}

/** What the model says about each of the pictures. */
export async function predict(images, top = 5) {
  const form = new FormData();
  for (const image of images) form.append("image", image, "picture");
  const answer = await request("v1/predictions", { method: "POST", form, query: { top } });
  return (await answer.json()).predictions;
}

export async function thumbnail(id) {
  return (await request(`v1/examples/${id}/thumbnail`)).blob();
}

export async function picture(id) {
  return (await request(`v1/examples/${id}/image`)).blob();
}
