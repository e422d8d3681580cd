/** What a vision model saw, and beside it the weights of its patches. */
import { drawColorBar, fillMasked, fitCanvas, makeCanvas, tableIndex, wordsImage } from "./canvas";
import { toWord } from "./colors";
import { make } from "./dom";
import { formatPercent, joinWords, quote } from "./format";
import { keyAt, neighbor, outside, patchAt, patchBox } from "./patches";
import type { Svg } from "./svg";
import type { Picture, Unit, Viewer } from "./types";

const [LARGEST, BAR] = [300, 26];

/** The weight of each token; NaN where a token is not shown, or masked. */
export function spread(weights: Float32Array, units: readonly Unit[], tokens: number): Float32Array {
  const all = new Float32Array(tokens).fill(NaN);
  units.forEach((unit, index) => {
    for (const token of unit.tokens) all[token] = weights[index]!;
  });
  return all;
}

/** Two pictures of one size: as the model saw it, and grey below the colors of weights. Both are clicked to choose a patch. */
export class PatchPicture {
  readonly element = make("figure", "hs-picture");
  readonly canvases: readonly [HTMLCanvasElement, HTMLCanvasElement];
  private readonly caption = make("figcaption", "hs-sentence");
  private pixels: { bytes: Uint8Array; theme: string; plain: HTMLCanvasElement; grey: HTMLCanvasElement } | null = null;
  private size: [number, number] = [1, 1];

  constructor(private readonly viewer: Viewer, private readonly choose: (token: number) => void) {
    this.canvases = [makeCanvas(viewer, "The picture; arrow keys choose a patch"), makeCanvas(viewer, "Weights of the patches", "", false)];
    this.element.append(make("div", "hs-panels", {}, ...this.canvases), this.caption);
    this.canvases[0].addEventListener("keydown", (event) => this.keydown(event));
  }

  private picture(): Picture {
    return this.viewer.sheet().picture!;
  }

  /** Read the pixels; their images are made once for each theme. */
  async load(): Promise<void> {
    const { theme, state } = this.viewer;
    const { width, height } = this.viewer.sheet(state.sheet).picture!;
    const bytes = await this.viewer.pixels(state.sheet);
    if (this.pixels?.bytes === bytes && this.pixels.theme === theme) return;
    const [plain, grey] = [toImage(bytes, width, height, (r, g, b) => [r, g, b]), toImage(bytes, width, height, pale(theme === "dark"))];
    this.pixels = { bytes, theme, plain, grey };
  }

  /** Draw the weights of all tokens, and frames around the patches of the chosen ones. */
  draw(weights: Float32Array, chosen: ReadonlySet<number>, signed: boolean, space: number): void {
    const [picture, { pixels, viewer }] = [this.picture(), this];
    if (!pixels) return;
    const side = Math.min(LARGEST, (space - 40) / 2);
    const scale = side / Math.max(picture.width, picture.height);
    this.size = [picture.width * scale, picture.height * scale];
    const limit = largestPatch(picture, weights);
    const [plain, colored] = this.canvases.map((canvas) => fitCanvas(canvas, this.size[0], this.size[1] + BAR));
    this.paint(plain!, pixels.plain);
    this.paint(colored!, pixels.grey);
    this.drawWeights(colored!, weights, limit, signed);
    for (const context of [plain!, colored!]) this.drawFrames(context, chosen);
    drawColorBar(colored!, [0, this.size[1] + 5, Math.min(140, this.size[0]), 7], viewer.colors(signed), limit, signed, viewer.palette);
    this.say(picture, weights);
  }

  private paint(context: CanvasRenderingContext2D, image: HTMLCanvasElement): void {
    context.imageSmoothingEnabled = image.width > this.size[0];
    context.drawImage(image, 0, 0, ...this.size);
  }

  private drawWeights(context: CanvasRenderingContext2D, weights: Float32Array, limit: number, signed: boolean): void {
    const [table, picture] = [this.viewer.colors(signed), this.picture()];
    weights.forEach((weight, key) => {
      const box = patchBox(picture, key, ...this.size);
      if (!box) return;
      if (Number.isNaN(weight)) return fillMasked(context, ...box, this.viewer.palette);
      context.globalAlpha = 0.68;
      context.fillStyle = table.css(tableIndex(weight, limit, signed) / 255);
      context.fillRect(...box);
      context.globalAlpha = 1;
    });
  }

  private drawFrames(context: CanvasRenderingContext2D, chosen: ReadonlySet<number>): void {
    context.strokeStyle = this.viewer.palette.negative;
    context.lineWidth = 2.5;
    for (const key of chosen) {
      const box = patchBox(this.picture(), key, ...this.size);
      if (box) context.strokeRect(box[0] + 1, box[1] + 1, box[2] - 2, box[3] - 2);
    }
  }

  /** How much weight lies on tokens that are no patch. */
  private say(picture: Picture, weights: Float32Array): void {
    const { keys, mass } = outside(picture, weights);
    const total = weights.reduce((sum, weight) => sum + (Number.isNaN(weight) ? 0 : Math.abs(weight)), 0);
    const names = joinWords(keys.slice(0, 3).map((key) => quote(this.viewer.tokens("key").text[key]!)));
    const text = keys.length && total ? `${formatPercent(Math.abs(mass) / total)} of the weight is on ${names}, which is no patch.` : "";
    const named = this.viewer.tokens("key").text.some((name) => /^\d+,\d+$/.test(name)) ? "Patches are named “row,column”, from “0,0” in the upper left corner." : "";
    const caption = [text, named].filter(Boolean).join(" ");
    if (this.caption.textContent !== caption) this.caption.textContent = caption;
  }

  /** The token whose patch is under the pointer; -1: none. */
  hit(event: MouseEvent): number {
    const frame = (event.currentTarget as HTMLCanvasElement).getBoundingClientRect();
    return patchAt(this.picture(), (event.clientX - frame.left) / this.size[0], (event.clientY - frame.top) / this.size[1]);
  }

  /** Arrow keys go to the next patch while the picture has the focus. */
  private keydown(event: KeyboardEvent): void {
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!move || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    const now = this.viewer.state.tokens[0];
    this.choose(now === undefined ? keyAt(this.picture(), 0, 0) : neighbor(this.picture(), now, ...move));
    event.preventDefault();
    event.stopPropagation();
  }

  /** The pictures at a place of an SVG. */
  vectors(svg: Svg, x: number, y: number): void {
    this.canvases.forEach((canvas, i) => svg.image(x + i * (this.size[0] + 20), y, this.size[0], this.size[1] + BAR, canvas));
  }

  /** Width and height of both together. */
  total(): [number, number] {
    return [2 * this.size[0] + 20, this.size[1] + BAR];
  }
}

function largestPatch(picture: Picture, weights: Float32Array): number {
  let largest = 0;
  weights.forEach((weight, key) => {
    if (picture.keyRow[key]! >= 0 && Math.abs(weight) > largest) largest = Math.abs(weight);
  });
  return largest || 1;
}

function pale(dark: boolean): (r: number, g: number, b: number) => [number, number, number] {
  return (r, g, b) => {
    const light = 0.3 * r + 0.59 * g + 0.11 * b;
    const grey = dark ? 0.6 * light : 110 + 0.57 * light;
    return [grey, grey, grey];
  };
}

function toImage(bytes: Uint8Array, width: number, height: number, color: (r: number, g: number, b: number) => [number, number, number]): HTMLCanvasElement {
  const words = Uint32Array.from({ length: width * height }, (_, i) => {
    return toWord(color(bytes[3 * i]!, bytes[3 * i + 1]!, bytes[3 * i + 2]!));
  });
  return wordsImage(words, height, width);
}
