/**
 * Keeps the files of the page, so that it opens while the service cannot be reached. The service
 * is always asked first: a newer page is never hidden by an older one. Answers about examples are
 * never kept.
 */

const CACHE = "evergrow-page";
// A phone at the edge of a network would wait for minutes.
const PATIENCE = 4000;
const ROOT = new URL("../", self.location);
const FILES = [
  "answer.css",
  "answer.js",
  "api.js",
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
  "file_input.js",
  "hold_button.js",
  "icon.svg",
  "live_predictions.js",
  "main.js",
  "messages.css",
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
  "teach.css",
  "teach_view.js",
  "text.js",
  "thumbnails.js",
  "token.js",
  "tray.js",
  "undo.js",
  "upload_batch.js",
  "views.css",
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
  if (event.request.method === "GET" && PAGE.has(url.href)) event.respondWith(answer(event.request, url.href));
});

async function answer(request, key) {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await Promise.race([fetch(request), tooLate()]);
    if (fresh.ok) await cache.put(key, fresh.clone());
    return fresh;
  } catch (error) {
    const kept = await cache.match(key);
    if (kept === undefined) throw error;
    return kept;
  }
}

function tooLate() {
  return new Promise((_, reject) => setTimeout(() => reject(new Error("no answer in time")), PATIENCE));
}
