/** Tokens as running text whose backgrounds show weights. */
import { fitCanvas, fitText, FONT, makeCanvas, tableIndex } from "./canvas";
import { textOn } from "./colors";
import { make } from "./dom";
import type { Unit, Viewer } from "./types";

const LINE = 26;
const BOX = 22;
const PAD = 5;

/** Where a token is: left, line, width. */
export interface Box {
  x: number;
  line: number;
  width: number;
}

/** Break tokens of some widths into lines. */
export function layoutStrip(widths: readonly number[], available: number, gap = 3): Box[] {
  let [x, line] = [0, 0];
  return widths.map((wanted) => {
    const width = Math.min(wanted, available);
    if (x > 0 && x + width > available) [x, line] = [0, line + 1];
    const box = { x, line, width };
    x += width + gap;
    return box;
  });
}

/** The index of the box at a point, or -1. */
export function boxAt(boxes: readonly Box[], x: number, y: number): number {
  const line = Math.floor(y / LINE);
  return boxes.findIndex((box) => box.line === line && x >= box.x - 1.5 && x < box.x + box.width + 1.5);
}

/** A strip of tokens; long ones scroll. */
export class Strip {
  readonly element = make("div", "hs-strip");
  readonly canvas: HTMLCanvasElement;
  private boxes: Box[] = [];
  private key = "";

  constructor(private readonly viewer: Viewer, label: string) {
    this.canvas = makeCanvas(viewer, label);
    this.element.append(this.canvas);
    this.element.addEventListener("scroll", () => hintMore(this.element));
  }

  /** Draw tokens with their weights; `selected` are outlined. */
  draw(units: readonly Unit[], weights: Float32Array, limit: number, signed: boolean, selected: ReadonlySet<number>, hovered: number, width: number): void {
    const probe = this.canvas.getContext("2d")!;
    const key = `${width}|${units.map((unit) => unit.text).join("\u0000")}`;
    const fresh = key !== this.key;
    if (fresh) {
      this.key = key;
      probe.font = `13px ${FONT}`;
      this.boxes = layoutStrip(units.map((unit) => Math.max(12, probe.measureText(shown(unit)).width + 2 * PAD)), width);
    }
    const context = fitCanvas(this.canvas, width, LINE * ((this.boxes.at(-1)?.line ?? 0) + 1));
    if (fresh) hintMore(this.element);
    const table = this.viewer.colors(signed);
    const { palette } = this.viewer;
    context.font = `13px ${FONT}`;
    context.textBaseline = "middle";
    units.forEach((unit, index) => {
      const box = this.boxes[index]!;
      const [y, weight] = [box.line * LINE + 2, weights[index]!];
      const masked = weight !== weight;
      const color = table.rgb(tableIndex(masked ? 0 : weight, limit, signed) / 255);
      context.fillStyle = masked ? palette.masked : `rgb(${color.join(" ")})`;
      roundRect(context, box.x, y, box.width, BOX);
      context.fill();
      context.fillStyle = masked ? palette.quiet : textOn(color);
      context.fillText(fitText(context, shown(unit), box.width - 2 * PAD + 1), box.x + PAD, y + BOX / 2 + 0.5);
      if (!selected.has(index) && hovered !== index) return;
      context.strokeStyle = hovered === index ? palette.ink : palette.accent;
      context.lineWidth = 2;
      roundRect(context, box.x + 1, y + 1, box.width - 2, BOX - 2);
      context.stroke();
    });
  }

  /** The token under the pointer, or -1. */
  hit(event: MouseEvent): number {
    const frame = this.canvas.getBoundingClientRect();
    return boxAt(this.boxes, event.clientX - frame.left, event.clientY - frame.top);
  }

  /** Bring a token into sight. */
  reveal(index: number): void {
    const box = this.boxes[index];
    if (!box) return;
    const [top, { scrollTop, clientHeight }] = [box.line * LINE, this.element];
    if (top < scrollTop || top + LINE > scrollTop + clientHeight) this.element.scrollTop = top - clientHeight / 2;
  }
}

/** Let the last line of what scrolls fade where more follow. */
export function hintMore(element: HTMLElement): void {
  const { scrollTop, clientHeight, scrollHeight } = element;
  element.classList.toggle("hs-more", scrollTop + clientHeight < scrollHeight - 4);
}

function shown(unit: Unit): string {
  return unit.text.replace(/^·/, "") || unit.text;
}

function roundRect(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  context.beginPath();
  context.roundRect(x, y, width, height, 3);
}
