/** Drawing on canvas: sharp on every screen, weights as images, hatching of masked cells, text that fits. */
import { type ColorTable, type Palette, parseHex, toWord } from "./colors";
import { make } from "./dom";
import { barMarks, type Beyond } from "./format";

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

let forcedRatio: number | null = null;

/** Draw with this many pixels to a CSS pixel, as for an export; null: as many as the screen has. */
export function forceRatio(ratio: number | null): void {
  forcedRatio = ratio;
}

/** How many pixels a CSS pixel has. */
export function pixelRatio(): number {
  return forcedRatio ?? (globalThis.devicePixelRatio || 1);
}

/** A canvas that keyboards reach, with a name and the text twin as its description. */
export function makeCanvas(viewer: { twinId: string }, label: string, className = "", interactive = true): HTMLCanvasElement {
  const role = interactive ? "application" : "img";
  const attributes = { role, "aria-label": label, "aria-describedby": viewer.twinId || null, tabindex: interactive ? 0 : null };
  return make("canvas", className, attributes);
}

/** Give a canvas a size in CSS pixels and return its context, scaled for the screen and cleared. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number, ratio = pixelRatio()): CanvasRenderingContext2D {
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Where to look for a color: the colors of all 256 codes of a head's small picture; one of them says that it is masked. */
export function codeColors(table: ColorTable, signed: boolean, scale: number, limit: number, masked: string): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    if (byte === (signed ? 128 : 1)) return toWord(parseHex(masked));
    const code = signed && byte > 127 ? byte - 256 : byte;
    const weight = signed ? Math.sign(code) * scale * (code / 127) ** 2 : scale * (code / 255) ** 2;
    return table.words[tableIndex(weight, limit, signed)]!;
  });
}

/** Index of a weight's color in a table of 256. */
export function tableIndex(weight: number, limit: number, signed: boolean): number {
  const share = limit > 0 ? weight / limit : 0;
  const place = signed ? 127.5 + 127.5 * share : 255 * share;
  return place <= 0 ? 0 : place >= 255 ? 255 : Math.round(place);
}

/** Weights as an image of one pixel a cell; masked cells are transparent. */
export function weightsImage(
  weights: Float32Array,
  rows: number,
  columns: number,
  table: ColorTable,
  limit: number,
  signed: boolean,
): HTMLCanvasElement {
  const words = new Uint32Array(rows * columns);
  const step = limit > 0 ? (signed ? 127.5 : 255) / limit : 0;
  const zero = signed ? 127.5 : 0;
  for (let i = 0; i < words.length; i++) {
    const weight = weights[i]!;
    if (weight !== weight) continue;
    const place = zero + weight * step;
    words[i] = table.words[place <= 0 ? 0 : place >= 255 ? 255 : (place + 0.5) | 0]!;
  }
  return wordsImage(words, rows, columns);
}

/** Pixels as an image. */
export function wordsImage(words: Uint32Array, rows: number, columns: number): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const pixels = new Uint8ClampedArray(words.buffer as ArrayBuffer, words.byteOffset, words.byteLength);
  if (rows && columns) canvas.getContext("2d")!.putImageData(new ImageData(pixels, columns, rows), 0, 0);
  return canvas;
}

/** Weights in fewer cells, each the weight of the largest size in its block, so that no peak is lost; NaN only where all are. */
export function poolMax(weights: Float32Array, rows: number, columns: number, outRows: number, outColumns: number): Float32Array {
  if (rows <= outRows && columns <= outColumns) return weights;
  const [r, c] = [Math.min(rows, outRows), Math.min(columns, outColumns)];
  const pooled = new Float32Array(r * c).fill(NaN);
  for (let row = 0; row < rows; row++) {
    const base = Math.floor((row * r) / rows) * c;
    for (let column = 0; column < columns; column++) {
      const weight = weights[row * columns + column]!;
      if (weight !== weight) continue;
      const place = base + Math.floor((column * c) / columns);
      const known = pooled[place]!;
      if (known !== known || Math.abs(weight) > Math.abs(known)) pooled[place] = weight;
    }
  }
  return pooled;
}

/** Fill a rectangle with the hatching of masked cells. */
export function fillMasked(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, palette: Palette): void {
  context.save();
  context.fillStyle = palette.masked;
  context.fillRect(x, y, width, height);
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = palette.hatch;
  context.lineWidth = 0.75;
  context.beginPath();
  for (let at = -height; at < width; at += 6) {
    context.moveTo(x + at, y + height);
    context.lineTo(x + at + height, y);
  }
  context.stroke();
  context.restore();
}

/** Text cut with an ellipsis so that it is no wider than `width`. */
export function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

/** Where the colors of a map end: a quantile of |weight|, so that one large weight does not hide the others. */
export function colorLimit(weights: Float32Array, columns: number): number {
  const share = Math.max(0.995, 1 - 0.5 / Math.max(1, columns));
  let [largest, count] = [0, 0];
  for (let i = 0; i < weights.length; i++) {
    const size = Math.abs(weights[i]!);
    if (size === size) {
      count++;
      if (size > largest) largest = size;
    }
  }
  if (!largest) return 1;
  const wanted = Math.ceil(share * (count - 1)); // sizes that are smaller, as numpy's quantile "higher" has it
  const coarse = findBin(weights, 0, largest, wanted);
  const fine = findBin(weights, coarse.low, coarse.high, wanted - coarse.below);
  return fine.high > 1e-6 * largest ? fine.high : largest;
}

/** Of 2048 equal parts of a range of sizes, the one that holds the size with so many smaller ones in the range. */
function findBin(weights: Float32Array, low: number, high: number, smaller: number): { low: number; high: number; below: number } {
  const bins = new Uint32Array(2048);
  const step = (high - low) / 2048;
  for (let i = 0; i < weights.length; i++) {
    const size = Math.abs(weights[i]!);
    if (size >= low && size <= high) bins[Math.min(2047, (size - low) / step) | 0]!++;
  }
  let [bin, below] = [0, 0];
  while (below + bins[bin]! <= smaller && bin < 2047) below += bins[bin++]!;
  return { low: low + bin * step, high: bin === 2047 ? high : low + (bin + 1) * step, below };
}

/** A vertical or horizontal color bar with its ends and its middle written beside it. */
export function drawColorBar(
  context: CanvasRenderingContext2D,
  [x, y, width, height]: [number, number, number, number],
  table: ColorTable,
  limit: number,
  signed: boolean,
  palette: Palette,
  beyond: Beyond = { below: false, above: false },
): void {
  const across = width > height;
  const words = Uint32Array.from({ length: 256 }, (_, i) => table.words[across ? i : 255 - i]!);
  const image = wordsImage(words, across ? 1 : 256, across ? 256 : 1);
  context.drawImage(image, x, y, width, height);
  context.strokeStyle = palette.faint;
  context.lineWidth = 1;
  context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  context.fillStyle = palette.quiet;
  context.font = `11px ${FONT}`;
  for (const [share, text] of barMarks(limit, signed, beyond)) {
    context.textAlign = across ? (share === 0 ? "left" : share === 1 ? "right" : "center") : "left";
    context.textBaseline = across ? "top" : share === 0 ? "bottom" : share === 1 ? "top" : "middle";
    if (across) context.fillText(text, x + share * width, y + height + 4);
    else context.fillText(text, x + width + 5, y + (1 - share) * height);
  }
}
