/** What the file contains besides its script: compressed blocks, and itself, to be saved again. */

// As it was opened, before this script changes it.
const original = document.documentElement.cloneNode(true);

export function textOf(id) {
  return document.getElementById(id).textContent;
}

/** The bytes of a compressed block. */
export async function bytesOf(id) {
  const stream = new Blob([fromBase64(textOf(id))]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** The file with another content of one block. */
export async function withBlock(id, content) {
  const compressed = await new Response(content.stream().pipeThrough(new CompressionStream("gzip"))).blob();
  const copy = original.cloneNode(true);
  const mark = `evergrow-block-${id}`;
  copy.querySelector(`#${id}`).textContent = mark;
  const [before, after] = copy.outerHTML.split(mark);
  return new Blob(["<!doctype html>\n", before, await toBase64(compressed), after, "\n"], { type: "text/html" });
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Base64 of bytes; a reader is faster than any loop. */
export function toBase64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
