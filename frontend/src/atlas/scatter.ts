/** Every head as a point by two numbers, with intervals. */
import { fitCanvas, FONT } from "../canvas";
import { type ColorTable, type Palette } from "../colors";
import { make } from "../dom";
import { formatNumber } from "../format";
import { Svg } from "../svg";
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
    this.drawAxes(context, content, palette);
    for (const point of this.points) this.drawInterval(context, point, palette, point.name === content.chosen || point.name === hovered);
    for (const point of this.points) this.drawPoint(context, point, content, palette, colors);
    for (const name of new Set([hovered, content.chosen])) this.drawName(context, name, palette);
    this.drawLayers(context, content, palette, colors);
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
    this.height = Math.max(280, Math.min(460, this.width * 0.72));
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

  private drawAxes(context: CanvasRenderingContext2D, content: ScatterContent, palette: Palette): void {
    const { x, y } = this.axes!;
    context.strokeStyle = palette.faint;
    context.lineWidth = 1;
    context.font = `11px ${FONT}`;
    context.fillStyle = palette.quiet;
    context.beginPath();
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const tick of x.ticks) {
      const at = Math.round(this.left(x.at(tick.value))) + 0.5;
      context.moveTo(at, TOP);
      context.lineTo(at, this.height - BOTTOM);
      context.fillText(tick.text, at, this.height - BOTTOM + 6);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of y.ticks) {
      const at = Math.round(this.top(y.at(tick.value))) + 0.5;
      context.moveTo(LEFT, at);
      context.lineTo(this.width - RIGHT, at);
      context.fillText(tick.text, LEFT - 7, at);
    }
    context.stroke();
    context.fillStyle = palette.ink;
    context.font = `12px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.fillText(content.titleX, this.left(0.5), this.height - 5, this.width - LEFT);
    context.save();
    context.translate(15, this.top(0.5));
    context.rotate(-Math.PI / 2);
    context.fillText(content.titleY, 0, 0, this.height - TOP);
    context.restore();
  }

  private interval(point: Placed): [number, number, number, number] {
    const { x, y } = this.axes!;
    return [
      point.xLow === null ? point.px : this.left(Math.max(-0.02, safe(x, point.xLow))),
      point.xHigh === null ? point.px : this.left(safe(x, point.xHigh)),
      point.yLow === null ? point.py : this.top(Math.max(-0.02, safe(y, point.yLow))),
      point.yHigh === null ? point.py : this.top(safe(y, point.yHigh)),
    ];
  }

  private drawInterval(context: CanvasRenderingContext2D, point: Placed, palette: Palette, strong: boolean): void {
    const [left, right, bottom, top] = this.interval(point);
    context.globalAlpha = strong ? 1 : 0.4;
    context.strokeStyle = strong ? palette.ink : palette.quiet;
    context.lineWidth = strong ? 1.5 : 1;
    context.beginPath();
    context.moveTo(left, point.py);
    context.lineTo(right, point.py);
    context.moveTo(point.px, bottom);
    context.lineTo(point.px, top);
    context.stroke();
    context.globalAlpha = 1;
  }

  private drawPoint(context: CanvasRenderingContext2D, point: Placed, content: ScatterContent, palette: Palette, colors: ColorTable): void {
    const chosen = point.name === content.chosen;
    context.beginPath();
    context.arc(point.px, point.py, chosen ? 7 : 4.5, 0, 2 * Math.PI);
    context.fillStyle = layerColor(content.layers.indexOf(point.layer), content.layers.length, colors);
    context.fill();
    context.lineWidth = chosen ? 2.5 : 1;
    context.strokeStyle = chosen ? palette.negative : palette.background;
    context.stroke();
  }

  private drawName(context: CanvasRenderingContext2D, name: string, palette: Palette): void {
    const point = this.points.find((each) => each.name === name);
    if (!point) return;
    context.font = `600 12px ${FONT}`;
    const right = point.px + 60 > this.width;
    context.textAlign = right ? "right" : "left";
    context.textBaseline = "bottom";
    context.lineWidth = 4;
    context.strokeStyle = palette.background;
    context.strokeText(name, point.px + (right ? -9 : 9), point.py - 6);
    context.fillStyle = palette.ink;
    context.fillText(name, point.px + (right ? -9 : 9), point.py - 6);
  }

  private drawLayers(context: CanvasRenderingContext2D, content: ScatterContent, palette: Palette, colors: ColorTable): void {
    const [size, count] = [11, content.layers.length];
    if (count < 2) return;
    const step = Math.min(size + 3, (this.width - LEFT - RIGHT - 90) / count);
    context.font = `11px ${FONT}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = palette.quiet;
    context.fillText(`layer ${content.layers[0]}`, LEFT, 14);
    const start = LEFT + context.measureText(`layer ${content.layers[0]}`).width + 8;
    content.layers.forEach((_, index) => {
      context.fillStyle = layerColor(index, count, colors);
      context.fillRect(start + index * step, 9, Math.max(1, step - 2), size);
    });
    context.fillStyle = palette.quiet;
    context.fillText(String(content.layers.at(-1)), start + count * step + 4, 14);
  }

  /** The same picture as vectors. */
  svg(content: ScatterContent, palette: Palette, colors: ColorTable, title: string): string {
    const svg = new Svg(this.width, this.height, palette.background, title);
    const { x, y } = this.axes!;
    const small = { "font-size": 11, fill: palette.quiet };
    for (const tick of x.ticks) {
      const at = this.left(x.at(tick.value));
      svg.line(at, TOP, at, this.height - BOTTOM, { stroke: palette.faint });
      svg.text(at, this.height - BOTTOM + 16, tick.text, { ...small, "text-anchor": "middle" });
    }
    for (const tick of y.ticks) {
      const at = this.top(y.at(tick.value));
      svg.line(LEFT, at, this.width - RIGHT, at, { stroke: palette.faint });
      svg.text(LEFT - 7, at + 4, tick.text, { ...small, "text-anchor": "end" });
    }
    for (const point of this.points) {
      const [left, right, bottom, top] = this.interval(point);
      const style = { stroke: palette.quiet, "stroke-opacity": point.name === content.chosen ? 1 : 0.4 };
      svg.line(left, point.py, right, point.py, style);
      svg.line(point.px, bottom, point.px, top, style);
    }
    for (const point of this.points) {
      const chosen = point.name === content.chosen;
      const fill = layerColor(content.layers.indexOf(point.layer), content.layers.length, colors);
      svg.circle(point.px, point.py, chosen ? 7 : 4.5, { fill, stroke: chosen ? palette.negative : palette.background, "stroke-width": chosen ? 2.5 : 1 });
      if (chosen) svg.text(point.px + 9, point.py - 6, point.name, { fill: palette.ink, "font-weight": 600 });
    }
    svg.text(this.left(0.5), this.height - 8, content.titleX, { fill: palette.ink, "text-anchor": "middle" });
    const middle = this.top(0.5);
    svg.text(15, middle, content.titleY, { fill: palette.ink, "text-anchor": "middle", transform: `rotate(-90 15 ${Math.round(middle)})` });
    svg.text(LEFT, 18, `color: layer ${content.layers[0]} (light) to ${content.layers.at(-1)} (dark)`, small);
    return svg.toString();
  }
}

/** A number with its interval: "0.61 [0.59, 0.63]". */
export function withInterval(value: number, low: number | null, high: number | null): string {
  return low === null || high === null ? formatNumber(value) : `${formatNumber(value)} [${formatNumber(low)}, ${formatNumber(high)}]`;
}

function layerColor(index: number, count: number, colors: ColorTable): string {
  return colors.css(0.32 + (0.66 * index) / Math.max(1, count - 1));
}

function safe(axis: Axis, value: number): number {
  return axis.log && value <= 0 ? -0.02 : axis.at(value);
}
