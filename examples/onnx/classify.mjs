// node classify.mjs model.onnx photo.jpg ...: after "npm install --ignore-scripts" in this folder.
// ORT=onnxruntime-web runs the same code on WebAssembly, as a browser does.
import { readFile } from "node:fs/promises";
import sharp from "sharp";

const ort = (await import(process.env.ORT ?? "onnxruntime-node")).default;
const [model, ...photos] = process.argv.slice(2);
const content = await readFile(model);
const classes = JSON.parse(readMetadata(content).get("evergrow.classes"));
const session = await ort.InferenceSession.create(content);
for (const photo of photos) {
  // Upright 8-bit RGB, without transparency.
  const { data, info } = await sharp(photo)
    .rotate()
    .removeAlpha()
    .toColourspace("srgb")
    .raw()
    .toBuffer({ resolveWithObject: true });
  const images = new ort.Tensor("uint8", new Uint8Array(data), [1, info.height, info.width, 3]);
  const found = await session.run({ images });
  const index = Number(found.label_index.data[0]);
  const name = found.is_unknown.data[0] ? "unknown" : classes[index];
  console.log([photo, name, found.probabilities.data[index].toFixed(4)].join("\t"));
}

// JavaScript's ONNX Runtime does not show the metadata of a file: field 14 of the outermost
// message, each entry a message of a key, field 1, and a value, field 2.
function readMetadata(bytes) {
  const text = (part) => new TextDecoder().decode(part);
  const entries = [...fields(bytes)].filter(([number]) => number === 14);
  return new Map(
    entries.map(([, entry]) => {
      const parts = new Map(fields(entry));
      return [text(parts.get(1)), text(parts.get(2))];
    }),
  );
}

// The numbers and contents of the fields of a message of protocol buffers.
function* fields(bytes) {
  let at = 0;
  const readNumber = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = readNumber();
    const length = { 0: () => readNumber() * 0, 1: () => 8, 2: readNumber, 5: () => 4 }[tag % 8]();
    yield [Math.floor(tag / 8), bytes.subarray(at, at + length)];
    at += length;
  }
}
