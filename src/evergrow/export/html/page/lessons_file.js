/** The file of lessons, which `evergrow learn` takes: JSON with the pictures in it. */

export const FORMAT = "evergrow-lessons";
export const VERSION = 1;
// The most that `evergrow learn` takes from one file is 256 MiB and 10,000 lessons; base64 adds a third.
const MAX_BYTES = 180_000_000;
const MAX_LESSONS = 10_000;

/** Lessons in the groups that become a file each, in order. */
export function groupLessons(lessons, maxBytes = MAX_BYTES, maxLessons = MAX_LESSONS) {
  const groups = [];
  let nBytes = Infinity;
  for (const lesson of lessons) {
    const { size } = lesson.image;
    if (nBytes + size > maxBytes || groups.at(-1).length === maxLessons) {
      groups.push([]);
      nBytes = 0;
    }
    groups.at(-1).push(lesson);
    nBytes += size;
  }
  return groups;
}

/**
 * The file as parts of a Blob; pictures are base64 texts.
 *
 * @param {Array<{key, label, sha256, at, picture: string}>} lessons
 */
export function lessonsFile(page, lessons) {
  const head = JSON.stringify({ format: FORMAT, version: VERSION, page });
  const entries = lessons.map(({ key, label, sha256, at, picture }) => {
    return JSON.stringify({ key, label, at, sha256, picture });
  });
  return [head.slice(0, -1), ',"lessons":[\n', entries.join(",\n"), "\n]}\n"];
}
