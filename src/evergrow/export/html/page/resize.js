/**
 * Prepares pixels for a network: crop, resize, normalise. The pixels are those that Pillow computes: two
 * passes, with the support of the filter scaled by the ratio, and rounding to bytes after each pass. Some
 * versions of Pillow take the pass along the height first if the height loses far more pixels.
 */

// Bits behind the point of the integer weights of a filter.
const PRECISION = 22;
const HALF = 1 << (PRECISION - 1);

const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

function bicubic(x) {
  const a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

function hamming(x) {
  if (x === 0) return 1;
  return x >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * Math.cos(Math.PI * x));
}

// Weight by distance, and the distance from which on it is 0.
const FILTERS = {
  box: { weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0), support: 0.5 },
  bilinear: { weight: (x) => Math.max(0, 1 - Math.abs(x)), support: 1 },
  hamming: { weight: (x) => hamming(Math.abs(x)), support: 1 },
  bicubic: { weight: (x) => bicubic(Math.abs(x)), support: 2 },
  lanczos: { weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0), support: 3 },
};

/** For each output place: the first input place, and the integer weights from there on. */
function weightsAlong(size, from, to, outSize, { weight, support }) {
  const ratio = ratioOf(from, to, outSize);
  const scale = Math.max(1, ratio);
  const reach = support * scale;
  return Array.from({ length: outSize }, (_, place) => {
    const center = Math.fround(from) + (place + 0.5) * ratio;
    const first = Math.max(0, Math.trunc(center - reach + 0.5));
    const end = Math.min(size, Math.trunc(center + reach + 0.5));
    const values = Array.from({ length: end - first }, (__, x) => weight((x + first - center + 0.5) * (1 / scale)));
    const total = values.reduce((sum, value) => sum + value, 0);
    const whole = values.map((value) => {
      const share = total === 0 ? value : value / total;
      return Math.trunc((share < 0 ? -0.5 : 0.5) + share * 2 ** PRECISION);
    });
    return { first, weights: Int32Array.from(whole) };
  });
}

function toByte(sum) {
  const value = sum >> PRECISION;
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

/** Pixels per new pixel; Pillow has the ends in single precision. */
function ratioOf(from, to, outSize) {
  return Math.fround(Math.fround(to) - Math.fround(from)) / outSize;
}

/**
 * @param {{data: Uint8ClampedArray, width: number, height: number}} image pixels with four channels
 * @param {number[]} box left, top, right and bottom
 * @param {object} preprocessing its `vertical_first` says whether the pass along the height may come first
 * @returns {Uint8Array} three channels per pixel
 */
export function resize(image, width, height, box, preprocessing) {
  const { interpolation, vertical_first: verticalFirst } = preprocessing;
  if (interpolation === "nearest") return resizeNearest(image, width, height, box);
  const filter = FILTERS[interpolation];
  const [left, top, right, bottom] = box;
  const across = weightsAlong(image.width, left, right, width, filter);
  const down = weightsAlong(image.height, top, bottom, height, filter);
  const [wholeHeight, wholeWidth] = wholeSizeOf(image, preprocessing);
  const lost = image.height - wholeHeight;
  if (verticalFirst && lost > 0 && lost > 2 * (image.width - wholeWidth)) {
    const [first, end] = rangeOf(across);
    const columns = { data: image.data, stride: 4 * image.width, step: 4, first, end };
    return resizeRows(resizeColumns(columns, down), end - first, first, height, across);
  }
  const [first, end] = rangeOf(down);
  const source = image.data.subarray(4 * image.width * first, 4 * image.width * end);
  const rows = resizeRows(source, image.width, 0, end - first, across, 4);
  const columns = { data: rows, stride: 3 * width, step: 3, first: 0, end: width };
  return resizeColumns(columns, down.map((one) => ({ ...one, first: one.first - first })));
}

/** The places that are used, from the first to behind the last. */
function rangeOf(weights) {
  const last = weights.at(-1);
  return [weights[0].first, last.first + last.weights.length];
}

/** The pass along the width; `offset` is the place of the first pixel of a row, `step` its channels. */
function resizeRows(data, inWidth, offset, height, across, step = 3) {
  const out = new Uint8Array(height * across.length * 3);
  let at = 0;
  for (let y = 0; y < height; y += 1) {
    for (const { first, weights } of across) {
      let red = HALF;
      let green = HALF;
      let blue = HALF;
      let from = (y * inWidth + first - offset) * step;
      for (let i = 0; i < weights.length; i += 1, from += step) {
        const weight = weights[i];
        red += data[from] * weight;
        green += data[from + 1] * weight;
        blue += data[from + 2] * weight;
      }
      out[at] = toByte(red);
      out[at + 1] = toByte(green);
      out[at + 2] = toByte(blue);
      at += 3;
    }
  }
  return out;
}

/** The pass along the height, of the columns from `first` to `end`. */
function resizeColumns({ data, stride, step, first: left, end }, down) {
  const width = end - left;
  const out = new Uint8Array(width * down.length * 3);
  const sums = new Int32Array(width * 3);
  down.forEach(({ first, weights }, y) => {
    sums.fill(HALF);
    for (let i = 0; i < weights.length; i += 1) {
      const weight = weights[i];
      let from = (first + i) * stride + left * step;
      for (let x = 0; x < sums.length; x += 3, from += step) {
        sums[x] += data[from] * weight;
        sums[x + 1] += data[from + 1] * weight;
        sums[x + 2] += data[from + 2] * weight;
      }
    }
    for (let x = 0; x < sums.length; x += 1) out[y * sums.length + x] = toByte(sums[x]);
  });
  return out;
}

function resizeNearest({ data, width: inWidth, height: inHeight }, width, height, [left, top, right, bottom]) {
  const out = new Uint8Array(width * height * 3);
  const columns = nearestPlaces(left, right, width, inWidth);
  nearestPlaces(top, bottom, height, inHeight).forEach((row, y) => {
    columns.forEach((column, x) => {
      const from = (row * inWidth + column) * 4;
      out.set(data.subarray(from, from + 3), (y * width + x) * 3);
    });
  });
  return out;
}

function nearestPlaces(from, to, outSize, size) {
  const ratio = ratioOf(from, to, outSize);
  let place = Math.fround(from) + ratio * 0.5;
  return Array.from({ length: outSize }, () => {
    const found = Math.min(size - 1, Math.max(0, Math.trunc(place)));
    // Added up one after the other, so that rounding errors are the same too.
    place += ratio;
    return found;
  });
}

/** Left, top, right and bottom of the part of an image that a network sees. */
export function boxOf({ width, height }, preprocessing) {
  if (preprocessing.resize === "stretch") return [0, 0, width, height];
  const [targetHeight, targetWidth] = sizeOf(preprocessing);
  if (preprocessing.resize in PLACES) return wholePixelBox({ width, height }, targetHeight, preprocessing);
  const unit = Math.min(height / targetHeight, width / targetWidth) * preprocessing.crop_share;
  const [cutWidth, cutHeight] = [unit * targetWidth, unit * targetHeight];
  const [left, top] = [(width - cutWidth) / 2, (height - cutHeight) / 2];
  return [Math.max(left, 0), Math.max(top, 0), Math.min(left + cutWidth, width), Math.min(top + cutHeight, height)];
}

// Half of an odd margin in whole pixels: to even, or down.
const PLACES = { torchvision: roundToEven, transformers: Math.floor };

function roundToEven(value) {
  return value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value);
}

/** Height and width of the resized image, of which the centre may be cut out. */
function wholeSizeOf({ width, height }, preprocessing) {
  if (!(preprocessing.resize in PLACES)) return sizeOf(preprocessing);
  const shorter = roundToEven(sizeOf(preprocessing)[0] / preprocessing.crop_share);
  return [height, width].map((one) => Math.floor((shorter * one) / Math.min(width, height)));
}

/** The part of an image that is left by libraries which resize it before they cut out its centre. */
function wholePixelBox({ width, height }, side, preprocessing) {
  const [newHeight, newWidth] = wholeSizeOf({ width, height }, preprocessing);
  const [left, top] = [newWidth, newHeight].map((one) => PLACES[preprocessing.resize]((one - side) / 2));
  return [
    (left * width) / newWidth,
    (top * height) / newHeight,
    Math.min(((left + side) * width) / newWidth, width),
    Math.min(((top + side) * height) / newHeight, height),
  ];
}

/** Height and width of the input. */
export function sizeOf({ size }) {
  return Array.isArray(size) ? size : [size, size];
}

/** An image as the input of a network: 32-bit numbers in its layout. */
export function prepare(image, preprocessing) {
  const [height, width] = sizeOf(preprocessing);
  const pixels = resize(image, width, height, boxOf(image, preprocessing), preprocessing);
  const three = (value) => Float32Array.from(Array.isArray(value) ? value : [value, value, value]);
  const [means, scales] = [three(preprocessing.mean), three(preprocessing.scale)];
  const order = preprocessing.channels === "bgr" ? [2, 1, 0] : [0, 1, 2];
  const values = new Float32Array(width * height * 3);
  const n = width * height;
  for (let channel = 0; channel < 3; channel += 1) {
    for (let i = 0; i < n; i += 1) {
      // Rounded to 32 bits after each step, as NumPy does.
      const value = Math.fround(Math.fround(pixels[3 * i + order[channel]] - means[channel]) / scales[channel]);
      values[preprocessing.layout === "nchw" ? channel * n + i : 3 * i + channel] = value;
    }
  }
  return values;
}
