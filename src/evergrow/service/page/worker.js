/**
 * The service worker: caches the files of the page, so that it opens offline. The network always
 * comes first: a newer page is never hidden by a cached one. Responses about examples are never
 * cached.
 */

const CACHE = "evergrow-page";
// A phone with a weak signal would wait for minutes.
const TIMEOUT_MS = 4000;
const ROOT = new URL("../", self.location);
const FILES = [
  "answer.css",
  "answer.js",
  "api.js",
  "browser_table.js",
  "camera.js",
  "change_text.js",
  "changes.js",
  "class_advice.js",
  "class_page.js",
  "class_progress.js",
  "classes.js",
  "confusion.js",
  "confusion_matrix.js",
  "connection.js",
  "dialogs.js",
  "dom.js",
  "download.js",
  "download_files.js",
  "file_input.js",
  "folders.js",
  "hold_button.js",
  "icon.svg",
  "large_view.js",
  "live_predictions.js",
  "main.js",
  "messages.css",
  "name_check.js",
  "name_form.js",
  "notifications.js",
  "outbox.js",
  "outbox_queue.js",
  "parts.css",
  "pending_store.js",
  "prediction_text.js",
  "problems.js",
  "review.js",
  "review_items.js",
  "review_queue.js",
  "session_cache.js",
  "shortcuts.js",
  "stage.js",
  "style.css",
  "taught_pictures.js",
  "taught_steps.js",
  "teach.css",
  "teach_view.js",
  "text.js",
  "thumbnails.js",
  "token.js",
  "tray.js",
  "try_view.js",
  "undo.js",
  "upload_batch.js",
  "views.css",
  "views.js",
  "workspace.js",
];
const PAGE = new Set([ROOT.href, ...FILES.map((name) => new URL(`static/${name}`, ROOT).href)]);

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(PAGE)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  url.hash = "";
  url.search = "";
  if (event.request.method === "GET" && PAGE.has(url.href)) event.respondWith(respond(event.request, url.href));
});

async function respond(request, key) {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await Promise.race([fetch(request), timeout()]);
    if (fresh.ok) await cache.put(key, fresh.clone());
    return fresh;
  } catch (error) {
    const cached = await cache.match(key);
    if (cached === undefined) throw error;
    return cached;
  }
}

function timeout() {
  return new Promise((_, reject) => setTimeout(() => reject(new Error("no response in time")), TIMEOUT_MS));
}
