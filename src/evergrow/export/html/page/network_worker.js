/* global ort */
/** The thread of the network: from the bytes of a picture to its embedding. ONNX Runtime stands before this script. */

import { answerCalls } from "./calls.js";
import { prepare, sizeOf } from "./resize.js";

// Larger pictures could fill the memory.
const MAX_PIXELS = 100_000_000;

let session = null;
let settings = null;

answerCalls({
  async load(network, glue, wasm, chosen) {
    settings = chosen;
    const { wasm: options } = ort.env;
    options.numThreads = 1;
    options.proxy = false;
    options.wasmBinary = wasm;
    // The runtime asks for the address of its binary even if it has it, and addresses of blobs have no folder.
    const inner = scriptUrl(glue);
    options.wasmPaths = {
      mjs: scriptUrl(
        `import make from "${inner}"; export default (given) => make({ locateFile: (name) => name, ...given });`,
      ),
    };
    session = await ort.InferenceSession.create(new Uint8Array(network), { executionProviders: ["wasm"] });
    URL.revokeObjectURL(inner);
    URL.revokeObjectURL(options.wasmPaths.mjs);
  },
  /** The embedding of an encoded picture, and its size. */
  async embed(blob) {
    const image = await decode(blob);
    const embedding = await run(prepare(image, settings.preprocessing));
    return { embedding, width: image.width, height: image.height };
  },
});

function scriptUrl(text) {
  return URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}

async function decode(blob) {
  let bitmap;
  try {
    // Colours as they are stored, as on the command line.
    bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none" });
  } catch {
    throw new Error("This is not a picture that the browser can read.");
  }
  const { width, height } = bitmap;
  if (width * height > MAX_PIXELS) throw new Error("This picture has too many pixels.");
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  // What is transparent is white.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return context.getImageData(0, 0, width, height);
}

async function run(input) {
  const { layout } = settings.preprocessing;
  const [height, width] = sizeOf(settings.preprocessing);
  const n = settings.batch;
  const batch = new Float32Array(n * input.length);
  for (let i = 0; i < n; i += 1) batch.set(input, i * input.length);
  const shape = layout === "nchw" ? [n, 3, height, width] : [n, height, width, 3];
  const inputs = { [settings.input]: new ort.Tensor("float32", batch, shape) };
  const found = await session.run(inputs, settings.outputs.map(({ name }) => name));
  const blocks = settings.outputs.map(({ name, width: size }) => {
    const vector = average(found[name], size, layout);
    return settings.unit_length ? unitLength(vector) : vector;
  });
  const embedding = new Float32Array(blocks.reduce((total, block) => total + block.length, 0));
  let at = 0;
  for (const block of blocks) {
    embedding.set(block, at);
    at += block.length;
  }
  if (!embedding.every(Number.isFinite)) throw new Error("The network returned a value that is not finite.");
  return embedding;
}

/** One number per channel: the mean over the places of the image, if there are several. */
function average({ data, dims }, size, layout) {
  const places = dims.slice(1).reduce((product, length) => product * length, 1) / size;
  if (places === 1) return data.slice(0, size);
  return Float32Array.from({ length: size }, (_, channel) => {
    let sum = 0;
    for (let i = 0; i < places; i += 1) sum += data[layout === "nchw" ? channel * places + i : i * size + channel];
    return sum / places;
  });
}

function unitLength(vector) {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return length > 0 ? vector.map((value) => value / length) : vector;
}
