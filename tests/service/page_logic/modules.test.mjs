import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PAGE = fileURLToPath(new URL("../page/", import.meta.url));
const files = readdirSync(PAGE).filter((name) => name.endsWith(".js"));
const sources = new Map(files.map((name) => [name, readFileSync(PAGE + name, "utf8")]));

test("every file is valid JavaScript", async () => {
  const check = (name) => promisify(execFile)(process.execPath, ["--check", PAGE + name]);
  await Promise.all(files.map(check));
});

/** Names that a module exports, by declaration or from another module. */
function exportsOf(source) {
  const declared = source.matchAll(/^export (?:async )?(?:function\*?|class|const|let) (\w+)/gm);
  const passedOn = source.matchAll(/^export \{([^}]*)\} from/gm);
  return new Set([
    ...[...declared].map((match) => match[1]),
    ...[...passedOn].flatMap((match) => match[1].split(",").map((name) => name.trim())),
  ]);
}

/** [file, names] of each import of a module. */
function importsOf(source) {
  const named = source.matchAll(/^import \{([^}]*)\} from "\.\/([\w.]+)";/gm);
  return [...named].map(([, names, file]) => [file, names.split(",").map((name) => name.trim())]);
}

test("every import names a file and something that it exports", () => {
  const missing = [];
  for (const [name, source] of sources) {
    for (const [file, names] of importsOf(source)) {
      const exported = sources.has(file) ? exportsOf(sources.get(file)) : new Set();
      for (const one of names) if (!exported.has(one)) missing.push(`${name}: ${one} of ${file}`);
    }
  }
  assert.deepEqual(missing, []);
});

test("every imported name is used", () => {
  const unused = [];
  for (const [name, source] of sources) {
    const body = source.replaceAll(/^import [^;]*;/gm, "");
    for (const one of importsOf(source).flatMap(([, names]) => names)) {
      if (!new RegExp(`\\b${one}\\b`).test(body)) unused.push(`${name}: ${one}`);
    }
  }
  assert.deepEqual(unused, []);
});

test("modules of pure logic do not use the DOM, directly or through imports", () => {
  const pure = [
    "change_text.js",
    "class_advice.js",
    "confusion_matrix.js",
    "download_files.js",
    "folders.js",
    "outbox_queue.js",
    "prediction_text.js",
    "problems.js",
    "review_items.js",
    "taught_steps.js",
    "text.js",
    "upload_batch.js",
  ];
  // An exported page has the modules of the service but for those of its downloads.
  const present = pure.filter((name) => sources.has(name));
  assert.ok(present.length >= pure.length - 1, `of ${pure.join(", ")} there are ${present.join(", ")}`);
  for (const name of present) {
    assert.doesNotMatch(sources.get(name), /\b(document|window|navigator|localStorage|indexedDB)\b/, name);
    for (const [file] of importsOf(sources.get(name))) assert.ok(pure.includes(file), `${name} imports ${file}`);
  }
});
