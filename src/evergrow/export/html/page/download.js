/** What can be saved: this page with all that was taught, or the lessons alone; and what is in it. */

import { newKey } from "./api.js";
import { showMessage } from "./dialogs.js";
import { button, element } from "./dom.js";
import { settings } from "./engine.js";
import { notify } from "./notifications.js";
import { textOf } from "./payload.js";
import { state } from "./state.js";
import { counted } from "./text.js";

const FILES = [
  {
    title: "This page",
    about: "One file with all that was taught here. It opens without a network.",
    make: async function* make() {
      yield await state.saved(newKey());
    },
    ending: ".html",
  },
  {
    title: "Lessons",
    about: "For evergrow learn, which teaches them to a workspace.",
    make: () => state.lessonsFiles(),
    ending: "-lessons.json",
    needsLessons: true,
  },
];

export function startDownload(control) {
  control.addEventListener("click", () => {
    const list = element("ul", { class: "downloads" }, ...FILES.map(row));
    const licences = button("Licences", () => showLicences(), { class: "plain link" });
    const versions = `Evergrow ${settings.version}, ${settings.runtime}`;
    const made = element("div", { class: "row muted small" }, versions, licences);
    showMessage("Save", element("p", {}, savedText()), list, made);
  });
}

function savedText() {
  const n = state.lessons.all.length;
  if (n === 0) return "Nothing has been taught on this page yet.";
  const where = state.stores ? "kept in this browser." : "in memory only: this browser stores nothing for this page.";
  return `${counted(n, "picture")} taught on this page, ${where}`;
}

function row(file) {
  const control = button(file.title, () => save(file, control));
  control.disabled = Boolean(file.needsLessons) && state.lessons.all.length === 0;
  return element("li", { class: "stack tight" }, control, element("span", { class: "muted small" }, file.about));
}

async function save({ make, ending }, control) {
  control.disabled = true;
  try {
    let n = 0;
    for await (const file of make()) {
      n += 1;
      const part = n > 1 ? `-${n}` : "";
      const url = URL.createObjectURL(file);
      element("a", { href: url, download: `${settings.name}${part}${ending}` }).click();
      // The browser has begun to save it by then.
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    }
  } catch (error) {
    notify("bad", `The file cannot be made: ${error.message}`);
  } finally {
    control.disabled = false;
  }
}

function showLicences() {
  showMessage("Licences", element("pre", { class: "licences", tabIndex: 0 }, textOf("licences")));
}
