/** How many pictures fit into one request. */

// Small enough to respond soon, large enough not to send a request for every picture.
const MAX_PICTURES = 8;
// The rest is for the form around the pictures.
const SHARE = 0.9;

/** The first pictures that fit into one request, and at least one. */
export function firstBatch(pictures, { max_request_bytes: maxBytes, max_images: maxImages }) {
  const first = pictures.slice(0, Math.min(MAX_PICTURES, maxImages));
  let size = 0;
  const fitting = first.filter(({ image }) => {
    size += image.size;
    return size < SHARE * maxBytes;
  });
  return fitting.length > 0 ? fitting : first.slice(0, 1);
}
