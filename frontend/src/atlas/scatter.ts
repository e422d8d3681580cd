/** Every head as a point by two numbers, with intervals. */
import { fitCanvas } from "../canvas";
import { type ColorTable, type Palette } from "../colors";
import { make } from "../dom";
import { formatNumber } from "../format";
import { CanvasSurface, type Surface, toSvg } from "../surface";
import type { Scalar } from "../types";
import { type Axis, listPoints, makeAxis, neighbor, type Point } from "./axes";

const LEFT = 64;
const BOTTOM = 46;
const TOP = 34;
const RIGHT = 16;
const NEAR = 14;

/** What is drawn. */
export interface ScatterContent {
  x: Scalar;
  y: Scalar;
  titleX: string;
  titleY: string;
  logX: boolean;
  logY: boolean;
  layers: readonly number[];
  heads: readonly number[];
  chosen: string;
}

type Placed = Point & { px: number; py: number };

/** The picture, and where its points are. */
export class Scatter {
  readonly canvas = make("canvas", "hs-scatter", { tabindex: 0, role: "group", "aria-roledescription": "scatter plot" });
  points: Placed[] = [];
  private axes: { x: Axis; y: Axis } | null = null;
  private width = 640;
  private height = 440;

  draw(content: ScatterContent, palette: Palette, colors: ColorTable, hovered: string, width: number): void {
    this.place(content, width);
    const context = fitCanvas(this.canvas, this.width, this.height);
    context.fillStyle = palette.background;
    context.fillRect(0, 0, this.width, this.height);
    this.paint(new CanvasSurface(context, palette), content, palette, colors, hovered);
  }

  /** The same picture as vectors. */
  svg(content: ScatterContent, palette: Palette, colors: ColorTable, title: string): string {
    return toSvg(this.width, this.height, palette, title, (surface) => this.paint(surface, content, palette, colors, ""));
  }

  /** The head under a point of the window; null where none is near. */
  hit(event: MouseEvent): Placed | null {
    const frame = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    let best: Placed | null = null;
    let least = NEAR;
    for (const point of this.points) {
      const distance = Math.hypot(point.px - x, point.py - y);
      if (distance < least) [best, least] = [point, distance];
    }
    return best;
  }

  /** The next head in the direction of an arrow key; without a chosen one, the first. */
  move(chosen: string, key: string): Placed | null {
    const from = this.points.find((point) => point.name === chosen);
    if (!from) return this.points[0] ?? null;
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[key];
    return step ? neighbor(from, this.points, ...step) : null;
  }

  private place(content: ScatterContent, width: number): void {
    this.width = Math.max(280, width);
    this.height = Math.max(300, Math.min(500, this.width * 1.02));
    const points = listPoints(content.x, content.y, content.layers, content.heads);
    const x = makeAxis(points.flatMap((p) => [p.x, p.xLow ?? p.x, p.xHigh ?? p.x]), content.logX, Math.max(2, this.width / 110));
    const y = makeAxis(points.flatMap((p) => [p.y, p.yLow ?? p.y, p.yHigh ?? p.y]), content.logY, Math.max(2, this.height / 70));
    this.axes = { x, y };
    this.points = points.map((point) => ({ ...point, px: this.left(x.at(point.x)), py: this.top(y.at(point.y)) }));
  }

  private left(share: number): number {
    return LEFT + share * (this.width - LEFT - RIGHT);
  }

  private top(share: number): number {
    return TOP + (1 - share) * (this.height - TOP - BOTTOM);
  }

  private paint(surface: Surface, content: ScatterContent, palette: Palette, colors: ColorTable, hovered: string): void {
    const strong = new Set([hovered, content.chosen]);
    const ordered = [...this.points].sort((a, b) => Number(strong.has(a.name)) - Number(strong.has(b.name)));
    this.paintAxes(surface, content, palette);
    for (const point of ordered) paintPoint(surface, point, content, palette, colors);
    for (const point of ordered) this.paintInterval(surface, point, palette, strong.has(point.name));
    for (const point of ordered) if (strong.has(point.name)) this.paintName(surface, point, palette);
    this.paintLayers(surface, content, palette, colors);
  }

  private paintAxes(surface: Surface, content: ScatterContent, palette: Palette): void {
    const { x, y } = this.axes!;
    const [bottom, right] = [this.height - BOTTOM, this.width - RIGHT];
    for (const tick of x.ticks) {
      const at = Math.round(this.left(x.at(tick.value))) + 0.5;
      surface.line(at, TOP, at, bottom, { color: palette.faint });
      surface.text(at, bottom + 12, tick.text, { color: palette.quiet, align: "center" });
    }
    for (const tick of y.ticks) {
      const at = Math.round(this.top(y.at(tick.value))) + 0.5;
      surface.line(LEFT, at, right, at, { color: palette.faint });
      surface.text(LEFT - 7, at, tick.text, { color: palette.quiet, align: "right" });
    }
    surface.text(this.left(0.5), this.height - 11, content.titleX, { color: palette.ink, align: "center", size: titleSize(content.titleX, right - LEFT) });
    surface.text(12, this.top(0.5), content.titleY, { color: palette.ink, align: "center", size: titleSize(content.titleY, bottom - TOP), upwards: true });
  }

  /** Ends of the interval: left, right, bottom, top; the point itself where there is none. */
  private interval(point: Placed): [number, number, number, number] {
    const { x, y } = this.axes!;
    return [
      point.xLow === null ? point.px : this.left(safe(x, point.xLow)),
      point.xHigh === null ? point.px : this.left(safe(x, point.xHigh)),
      point.yLow === null ? point.py : this.top(safe(y, point.yLow)),
      point.yHigh === null ? point.py : this.top(safe(y, point.yHigh)),
    ];
  }

  private paintInterval(surface: Surface, point: Placed, palette: Palette, strong: boolean): void {
    const [left, right, bottom, top] = this.interval(point);
    const look = strong ? { color: palette.ink, width: 1.5 } : { color: palette.quiet, alpha: 0.7 };
    surface.line(left, point.py, right, point.py, look);
    surface.line(point.px, bottom, point.px, top, look);
  }

  private paintName(surface: Surface, point: Placed, palette: Palette): void {
    const width = 7.2 * point.name.length + 6;
    const x = point.px + 9 + width > this.width ? point.px - 9 - width : point.px + 9;
    surface.rect(x, point.py - 22, width, 15, palette.background);
    surface.text(x + 3, point.py - 14.5, point.name, { color: palette.ink, size: 12, bold: true });
  }

  private paintLayers(surface: Surface, content: ScatterContent, palette: Palette, colors: ColorTable): void {
    const count = content.layers.length;
    if (count < 2) return;
    const first = `layer ${content.layers[0]}`;
    const start = LEFT + 6.2 * first.length + 4;
    const step = Math.min(14, (this.width - start - RIGHT - 30) / count);
    surface.text(LEFT, 14, first, { color: palette.quiet });
    content.layers.forEach((_, index) => surface.rect(start + index * step, 8.5, Math.max(1, step - 2), 11, layerColor(index, count, colors)));
    surface.text(start + count * step + 4, 14, String(content.layers.at(-1)), { color: palette.quiet });
  }
}

function paintPoint(surface: Surface, point: Placed, content: ScatterContent, palette: Palette, colors: ColorTable): void {
  const chosen = point.name === content.chosen;
  surface.dot(point.px, point.py, chosen ? 8 : 4.8, chosen ? palette.negative : palette.background);
  surface.dot(point.px, point.py, chosen ? 5.5 : 4, layerColor(content.layers.indexOf(point.layer), content.layers.length, colors));
}

/** The size of letters with which a title fits, at most 12. */
function titleSize(title: string, room: number): number {
  return Math.max(8, Math.min(12, room / (0.56 * title.length)));
}

/** A number with its interval: "0.61 [0.59, 0.63]". */
export function withInterval(value: number, low: number | null, high: number | null): string {
  return low === null || high === null ? formatNumber(value) : `${formatNumber(value)} [${formatNumber(low)}, ${formatNumber(high)}]`;
}

function layerColor(index: number, count: number, colors: ColorTable): string {
  return colors.css(0.32 + (0.66 * index) / Math.max(1, count - 1));
}

/** Where a number is on an axis; a logarithmic one has no place for 0 and less, which lie below its end. */
function safe(axis: Axis, value: number): number {
  return axis.log && value <= 0 ? -0.02 : Math.max(-0.02, axis.at(value));
}
