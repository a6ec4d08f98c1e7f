/** The file of lessons, which `evergrow learn` takes: JSON with the pictures in it. */

export const FORMAT = "evergrow-lessons";
export const VERSION = 1;

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
