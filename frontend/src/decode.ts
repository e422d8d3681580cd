/** Arrays of a source as numbers. All multi-byte numbers are little-endian, as are all platforms that run a browser. */
import type { Codec } from "./types";

const squares = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);
const signedSquares = Float32Array.from({ length: 256 }, (_, byte) => {
  const code = byte > 127 ? byte - 256 : byte;
  return Math.sign(code) * (code / 127) ** 2;
});
let halves: Float32Array | null = null;

/** Decode a map or thumbnails of one head into `out`, or a new array. */
export function decode(
  buffer: ArrayBuffer,
  codec: Codec,
  signed: boolean,
  scale: number,
  offset = 0,
  length?: number,
): Float32Array {
  if (codec === "float32") return floats(buffer, offset, length);
  if (codec === "float16") return float16(buffer, offset, length);
  const bytes = new Uint8Array(buffer, offset, length ?? buffer.byteLength - offset);
  const table = signed ? signedSquares : squares;
  const numbers = new Float32Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) numbers[i] = table[bytes[i]!]! * scale;
  return numbers;
}

function floats(buffer: ArrayBuffer, offset: number, length?: number): Float32Array {
  const count = length ?? (buffer.byteLength - offset) / 4;
  return offset % 4 ? new Float32Array(buffer.slice(offset, offset + 4 * count)) : new Float32Array(buffer, offset, count);
}

/** Decode half-precision numbers by a table of all 65,536 of them, made at first use. */
export function float16(buffer: ArrayBuffer, offset = 0, length?: number): Float32Array {
  halves ??= Float32Array.from({ length: 65536 }, (_, bits) => halfToNumber(bits));
  const count = length ?? (buffer.byteLength - offset) / 2;
  const codes = offset % 2 ? new Uint16Array(buffer.slice(offset, offset + 2 * count)) : new Uint16Array(buffer, offset, count);
  const numbers = new Float32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = halves[codes[i]!]!;
  return numbers;
}

/** The number that 16 bits stand for in IEEE 754. */
export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Largest error of a decoded weight: half the distance to the next code. */
export function errorOf(weight: number, codec: Codec, signed: boolean, scale: number): number {
  if (!Number.isFinite(weight)) return 0;
  if (codec === "float32") return 0;
  if (codec === "float16") return weight === 0 ? 2 ** -25 : 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(weight)))) - 11);
  if (scale <= 0) return 0;
  const steps = signed ? 127 : 255;
  const code = Math.sqrt(Math.min(1, Math.abs(weight) / scale)) * steps;
  return (scale * (code + 0.25)) / steps ** 2;
}
