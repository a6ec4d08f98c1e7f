/** Named arrays in one block of bytes: the format of safetensors. */

const TYPES = { F64: Float64Array, F32: Float32Array, I32: Int32Array, U8: Uint8Array };
const HEADER_LENGTH = 8;
const ALIGNMENT = 8;

/**
 * Arrays by name, and the facts that are stored with them.
 *
 * @param {ArrayBuffer} buffer
 */
export function readTensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = new TextDecoder().decode(new Uint8Array(buffer, HEADER_LENGTH, length));
  const { __metadata__: metadata, ...entries } = JSON.parse(header);
  const arrays = {};
  for (const [name, { dtype, shape, data_offsets: [first, end] }] of Object.entries(entries)) {
    const start = HEADER_LENGTH + length + first;
    // Copied, because arrays must begin at multiples of their size.
    arrays[name] = { shape, values: new TYPES[dtype](buffer.slice(start, start + end - first)) };
  }
  return { facts: JSON.parse(metadata.facts), arrays };
}

/**
 * @param {object} facts values of JSON
 * @param {object} arrays by name: shape and values
 */
export function writeTensors(facts, arrays) {
  const header = { __metadata__: { facts: JSON.stringify(facts) } };
  let offset = 0;
  for (const [name, { shape, values }] of Object.entries(arrays)) {
    const dtype = Object.keys(TYPES).find((one) => values instanceof TYPES[one]);
    header[name] = { dtype, shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padded = new Uint8Array(Math.ceil(text.length / ALIGNMENT) * ALIGNMENT).fill(0x20);
  padded.set(text);
  const length = new DataView(new ArrayBuffer(HEADER_LENGTH));
  length.setBigUint64(0, BigInt(padded.length), true);
  return new Blob([length.buffer, padded, ...Object.values(arrays).map(({ values }) => values)]);
}
