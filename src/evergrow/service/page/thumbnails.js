/** Small pictures of examples, fetched with the token when they come into sight. */

import { expectProblem, picture, thumbnail } from "./api.js";
import { element } from "./dom.js";

const NEAR = "200px";

const wanted = new WeakMap();

const sight = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      sight.unobserve(entry.target);
      load(entry.target, wanted.get(entry.target));
    }
  },
  { rootMargin: NEAR },
);

/** An image that fills itself once it is looked at. */
export function thumbnailOf(example, description) {
  if (example.image === null) {
    // Robots may teach numbers without a picture.
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
    // Once decoded the picture no longer needs its bytes.
    const revoke = () => URL.revokeObjectURL(url);
    image.addEventListener("load", revoke, { once: true });
    image.addEventListener("error", revoke, { once: true });
    image.src = url;
  } catch (error) {
    expectProblem(error);
    image.alt = `${image.alt} (cannot be shown: ${error.message})`;
  }
}
