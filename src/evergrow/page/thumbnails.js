/** Pictures of examples, loaded with the token when they become visible. */

import { expectProblem, picture, thumbnail } from "./api.js";
import { element } from "./dom.js";

const MARGIN = "200px";

const wanted = new WeakMap();

const sight = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      sight.unobserve(entry.target);
      load(entry.target, wanted.get(entry.target));
    }
  },
  { rootMargin: MARGIN },
);

/** An image that is loaded when it becomes visible. */
export function thumbnailOf(example, description) {
  if (example.image === null) {
    // Programs may teach embeddings without a picture.
    return element("span", { class: "thumb none" }, "No picture");
  }
  const image = element("img", { alt: description, class: "thumb", decoding: "async" });
  wanted.set(image, () => thumbnail(example.id));
  sight.observe(image);
  return image;
}

/** The picture as it was taught. */
export function pictureOf(example, description) {
  const image = element("img", { alt: description, decoding: "async" });
  load(image, () => picture(example.id));
  return image;
}

async function load(image, fetched) {
  try {
    const url = URL.createObjectURL(await fetched());
    // The bytes are not needed once the image is decoded.
    const revoke = () => URL.revokeObjectURL(url);
    image.addEventListener("load", revoke, { once: true });
    image.addEventListener("error", revoke, { once: true });
    image.src = url;
  } catch (error) {
    expectProblem(error);
    image.alt = `${image.alt} (cannot be shown: ${error.message})`;
  }
}
