/** A heat map of one head: cells, token labels, marginals, a color bar, and marks for cursor and selection. */
import { colorLimit, drawColorBar, fillMasked, fitCanvas, fitText, FONT, makeCanvas, pixelRatio, poolMax, tableIndex, weightsImage } from "./canvas";
import type { ColorTable, Palette } from "./colors";
import { make } from "./dom";
import { barMarks, findBeyond } from "./format";
import type { Svg } from "./svg";
import type { MapData, Unit, Viewer } from "./types";

/** Rows and columns of a map that are drawn: ends are exclusive. */
export interface Zoom {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

/** Where everything is, in CSS pixels. */
export interface HeatLayout {
  x: number;
  y: number;
  width: number;
  height: number;
  zoom: Zoom;
  total: [number, number];
  labels: { left: number; top: number };
  marginal: number;
  bar: HeatShape["bar"];
}

export interface HeatContent {
  map: MapData;
  /** What is drawn: the map's weights, or a difference. */
  weights: Float32Array;
  signed: boolean;
  limit: number;
  label: string;
  zoom: Zoom | null;
}

export interface HeatShape {
  width: number;
  height: number;
  labels: { left: boolean; top: boolean };
  marginals: boolean;
  /** Where the color bar is. */
  bar: "right" | "below";
  largestCell: number;
}

export interface Cell {
  row: number;
  column: number;
}

const LABEL = 11;
const MARGINAL = 26;
/** Space left of a map without labels: half the height of the upright label of a narrow first column. */
export const EDGE = 7;

/** Fit a map into a shape; cells are square unless the map is very long one way. */
export function layoutHeat(shape: HeatShape, left: number, top: number, zoom: Zoom): HeatLayout {
  const marginal = shape.marginals ? MARGINAL : 0;
  const beside = (shape.bar === "right" ? 72 : 4) + (marginal ? marginal + 8 : 0);
  const under = (shape.bar === "below" ? 34 : 2) + (marginal ? marginal + 8 : 0);
  const across = Math.max(40, shape.width - left - beside);
  const down = Math.max(40, shape.height - top - under);
  const cell = Math.min(across / zoom.columns, down / zoom.rows, shape.largestCell);
  const stretch = Math.max(zoom.columns, zoom.rows) / Math.min(zoom.columns, zoom.rows) > 6;
  const width = stretch ? Math.min(across, zoom.columns * shape.largestCell) : cell * zoom.columns;
  const height = stretch ? Math.min(down, zoom.rows * shape.largestCell) : cell * zoom.rows;
  return { x: left, y: top, width, height, zoom, total: [left + width + beside, top + height + under], labels: { left, top }, marginal, bar: shape.bar };
}

/** The cell at a point, or null outside of the cells. */
export function cellAt(layout: HeatLayout, x: number, y: number): Cell | null {
  const { zoom } = layout;
  const column = Math.floor(((x - layout.x) / layout.width) * zoom.columns);
  const row = Math.floor(((y - layout.y) / layout.height) * zoom.rows);
  if (column < 0 || row < 0 || column >= zoom.columns || row >= zoom.rows) return null;
  return { row: zoom.row + row, column: zoom.column + column };
}

/** A bar beside the cells: the mean of what goes to a key, or the sum of what comes from a query. */
export interface Marginal {
  side: "query" | "key";
  index: number;
  value: number;
}

/** The bar at a point: below the cells, or beside them. */
export function marginalAt(layout: HeatLayout, x: number, y: number): { side: "query" | "key"; index: number } | null {
  const near = (past: number): boolean => past >= 0 && past < layout.marginal + 6;
  const below = near(y - layout.y - layout.height) && cellAt(layout, x, layout.y);
  const beside = near(x - layout.x - layout.width) && cellAt(layout, layout.x, y);
  return below ? { side: "key", index: below.column } : beside ? { side: "query", index: beside.row } : null;
}

/** Sum of each row, and mean of each column over all rows: what a query that cannot see a key gives it is nothing. */
export function marginals(weights: Float32Array, rows: number, columns: number): { rows: Float32Array; columns: Float32Array } {
  const sums = new Float32Array(rows);
  const means = new Float32Array(columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const weight = weights[row * columns + column]!;
      if (weight !== weight) continue;
      sums[row]! += weight;
      means[column]! += weight / rows;
    }
  return { rows: sums, columns: means };
}

interface Derived {
  limit: number;
  rows: Float32Array;
  columns: Float32Array;
}
const derived = new WeakMap<Float32Array, Derived>();

/** Color limit and marginals of weights, computed once. */
export function derive(weights: Float32Array, rows: number, columns: number): Derived {
  const known = derived.get(weights);
  if (known) return known;
  const made = { limit: colorLimit(weights, columns), ...marginals(weights, rows, columns) };
  derived.set(weights, made);
  return made;
}

/** One heat map on two canvases: the cells, and above them the marks that follow the pointer. */
export class HeatMap {
  readonly element = make("div", "hs-heat");
  readonly canvas: HTMLCanvasElement;
  private readonly overlay = make("canvas", "hs-over", { "aria-hidden": "true" });
  layout: HeatLayout | null = null;
  private content: HeatContent | null = null;
  private shape: HeatShape | null = null;

  constructor(private readonly viewer: Viewer, label: string) {
    this.canvas = makeCanvas(viewer, label);
    this.element.append(this.canvas, this.overlay);
  }

  /** Draw the cells. */
  draw(content: HeatContent, shape: HeatShape): void {
    this.content = content;
    this.shape = shape;
    const { map } = content;
    const zoom = content.zoom ?? { row: 0, column: 0, rows: map.rows, columns: map.columns };
    const probe = this.canvas.getContext("2d")!;
    const left = shape.labels.left ? labelWidth(probe, map.queries, zoom.row, zoom.rows) : EDGE;
    const top = shape.labels.top ? labelWidth(probe, map.keys, zoom.column, zoom.columns) : 2;
    const layout = layoutHeat(shape, left, top, zoom);
    this.layout = layout;
    const context = fitCanvas(this.canvas, layout.total[0], layout.total[1]);
    fitCanvas(this.overlay, layout.total[0], layout.total[1]);
    this.drawCells(context, content, layout);
    this.drawLabels(context, map, layout, shape);
    if (layout.marginal) this.drawMarginals(context, content, layout);
    this.drawBar(context, content, layout);
  }

  private drawCells(context: CanvasRenderingContext2D, content: HeatContent, layout: HeatLayout): void {
    const { palette } = this.viewer;
    const { zoom } = layout;
    fillMasked(context, layout.x, layout.y, layout.width, layout.height, palette);
    const ratio = pixelRatio();
    const part = cut(content.weights, content.map.columns, zoom);
    const [rows, columns] = [Math.min(zoom.rows, Math.ceil(layout.height * ratio)), Math.min(zoom.columns, Math.ceil(layout.width * ratio))];
    const pooled = poolMax(part, zoom.rows, zoom.columns, rows, columns);
    const image = weightsImage(pooled, rows, columns, this.colors(content), content.limit, content.signed);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, layout.x, layout.y, layout.width, layout.height);
    context.strokeStyle = palette.faint;
    context.lineWidth = 1;
    context.strokeRect(layout.x - 0.5, layout.y - 0.5, layout.width + 1, layout.height + 1);
  }

  private colors(content: HeatContent): ColorTable {
    return this.viewer.colors(content.signed);
  }

  private drawLabels(context: CanvasRenderingContext2D, map: MapData, layout: HeatLayout, shape: HeatShape): void {
    const { zoom } = layout;
    const { palette } = this.viewer;
    context.font = `${LABEL}px ${FONT}`;
    context.textBaseline = "middle";
    if (shape.labels.left) {
      context.textAlign = "right";
      eachLabel(map.queries, zoom.row, zoom.rows, layout.height / zoom.rows, (unit, index) => {
        context.fillStyle = unit.special ? palette.quiet : palette.ink;
        context.fillText(fitText(context, unit.text, layout.labels.left - 8), layout.x - 6, layout.y + ((index + 0.5) * layout.height) / zoom.rows);
      });
    }
    if (!shape.labels.top) return;
    eachLabel(map.keys, zoom.column, zoom.columns, layout.width / zoom.columns, (unit, index) => {
      context.save();
      context.translate(layout.x + ((index + 0.5) * layout.width) / zoom.columns, layout.y - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillStyle = unit.special ? palette.quiet : palette.ink;
      context.fillText(fitText(context, unit.text, layout.labels.top - 8), 0, 0);
      context.restore();
    });
  }

  private drawMarginals(context: CanvasRenderingContext2D, content: HeatContent, layout: HeatLayout): void {
    const { zoom } = layout;
    const { palette } = this.viewer;
    const sums = derive(content.weights, content.map.rows, content.map.columns);
    const bars = (values: Float32Array, start: number, count: number, place: (index: number, length: number, negative: boolean) => void): void => {
      let most = 0;
      for (let i = 0; i < count; i++) most = Math.max(most, Math.abs(values[start + i]!));
      for (let i = 0; i < count; i++) place(i, most ? (Math.abs(values[start + i]!) / most) * layout.marginal : 0, values[start + i]! < 0);
    };
    const [w, h] = [layout.width / zoom.columns, layout.height / zoom.rows];
    const [gapX, gapY] = [Math.min(1, w * 0.15), Math.min(1, h * 0.15)];
    context.globalAlpha = 0.55;
    bars(sums.columns, zoom.column, zoom.columns, (i, length, negative) => {
      context.fillStyle = negative ? palette.negative : palette.positive;
      context.fillRect(layout.x + i * w + gapX, layout.y + layout.height + 6, w - 2 * gapX, length);
    });
    bars(sums.rows, zoom.row, zoom.rows, (i, length, negative) => {
      context.fillStyle = negative ? palette.negative : palette.positive;
      context.fillRect(layout.x + layout.width + 6, layout.y + i * h + gapY, length, h - 2 * gapY);
    });
    context.globalAlpha = 1;
    context.font = `10px ${FONT}`;
    context.fillStyle = palette.quiet;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillText("mean", layout.x - 6, layout.y + layout.height + 6 + layout.marginal / 2);
    context.textAlign = "left";
    context.fillText("sum", layout.x + layout.width + 6, layout.y - 7);
  }

  private drawBar(context: CanvasRenderingContext2D, content: HeatContent, layout: HeatLayout): void {
    drawColorBar(context, barBox(layout), this.colors(content), content.limit, content.signed, this.viewer.palette, findBeyond(content.weights, content.limit));
  }

  /** Draw the crosshair, the selected rows or columns, and the rectangle of a drag. */
  mark(cursor: Cell | null, selected: { rows?: readonly number[]; columns?: readonly number[] } = {}, drag: [number, number, number, number] | null = null): void {
    const { layout, content } = this;
    if (!layout || !content) return;
    const { palette } = this.viewer;
    const context = fitCanvas(this.overlay, layout.total[0], layout.total[1]);
    const { zoom } = layout;
    const [w, h] = [layout.width / zoom.columns, layout.height / zoom.rows];
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5;
    for (const row of selected.rows ?? []) if (inside(row, zoom.row, zoom.rows)) context.strokeRect(layout.x, layout.y + (row - zoom.row) * h, layout.width, h);
    for (const column of selected.columns ?? []) if (inside(column, zoom.column, zoom.columns)) context.strokeRect(layout.x + (column - zoom.column) * w, layout.y, w, layout.height);
    if (cursor && inside(cursor.row, zoom.row, zoom.rows) && inside(cursor.column, zoom.column, zoom.columns)) this.markCursor(context, cursor, layout, w, h);
    if (!drag) return;
    context.setLineDash([4, 3]);
    context.strokeStyle = palette.ink;
    context.strokeRect(Math.min(drag[0], drag[2]), Math.min(drag[1], drag[3]), Math.abs(drag[2] - drag[0]), Math.abs(drag[3] - drag[1]));
    context.setLineDash([]);
  }

  private markCursor(context: CanvasRenderingContext2D, cursor: Cell, layout: HeatLayout, w: number, h: number): void {
    const { palette } = this.viewer;
    const [x, y] = [layout.x + (cursor.column - layout.zoom.column) * w, layout.y + (cursor.row - layout.zoom.row) * h];
    context.fillStyle = palette.accent;
    context.globalAlpha = 0.13;
    context.fillRect(layout.x, y, layout.width, h);
    context.fillRect(x, layout.y, w, layout.height);
    context.globalAlpha = 1;
    context.strokeStyle = palette.ink;
    context.lineWidth = 1.5;
    context.strokeRect(x - 0.5, y - 0.5, Math.max(2, w) + 1, Math.max(2, h) + 1);
    this.markLabels(context, cursor, layout, x + w / 2, y + h / 2);
  }

  /** Write the tokens of the crosshair over the labels, also where labels are left out. */
  private markLabels(context: CanvasRenderingContext2D, cursor: Cell, layout: HeatLayout, x: number, y: number): void {
    const { map } = this.content!;
    const { palette } = this.viewer;
    context.font = `600 ${LABEL}px ${FONT}`;
    context.textBaseline = "middle";
    const write = (text: string, width: number, align: "left" | "right"): void => {
      const shown = fitText(context, text, width - 8);
      const length = context.measureText(shown).width + 6;
      context.fillStyle = palette.background;
      context.fillRect(align === "right" ? -length : 0, -8, length, 16);
      context.fillStyle = palette.accent;
      context.textAlign = align;
      context.fillText(shown, align === "right" ? -3 : 3, 0);
    };
    if (this.shape?.labels.left) {
      context.save();
      context.translate(layout.x - 3, y);
      write(map.queries[cursor.row]!.text, layout.labels.left, "right");
      context.restore();
    }
    if (!this.shape?.labels.top) return;
    context.save();
    context.translate(x, layout.y - 3);
    context.rotate(-Math.PI / 2);
    write(map.keys[cursor.column]!.text, layout.labels.top, "left");
    context.restore();
  }

  /** The cell under the pointer. */
  hit(event: MouseEvent): Cell | null {
    const [x, y] = this.point(event);
    return this.layout ? cellAt(this.layout, x, y) : null;
  }

  /** The bar under the pointer: the mean of a column, or the sum of a row. */
  hitMarginal(event: MouseEvent): Marginal | null {
    const [{ layout, content }, [x, y]] = [this, this.point(event)];
    const found = layout && content ? marginalAt(layout, x, y) : null;
    const sums = found && derive(content!.weights, content!.map.rows, content!.map.columns);
    return found && { ...found, value: (found.side === "key" ? sums!.columns : sums!.rows)[found.index]! };
  }

  /** The pointer's place on the canvas. */
  point(event: MouseEvent): [number, number] {
    const frame = this.canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }

  /** Draw the same as vectors at a place. */
  vectors(svg: Svg, x: number, y: number): void {
    const { layout, content, shape } = this;
    if (!layout || !content || !shape) return;
    const { palette } = this.viewer;
    const { zoom } = layout;
    const [w, h] = [layout.width / zoom.columns, layout.height / zoom.rows];
    const table = this.colors(content);
    svg.rect(x + layout.x, y + layout.y, layout.width, layout.height, { fill: palette.masked, stroke: palette.faint });
    const { map, weights } = content;
    if (zoom.rows * zoom.columns > 40_000) {
      const part = cut(weights, map.columns, zoom);
      svg.image(x + layout.x, y + layout.y, layout.width, layout.height, weightsImage(part, zoom.rows, zoom.columns, table, content.limit, content.signed));
    } else {
      svg.cells(x + layout.x, y + layout.y, [w, h], zoom.rows, zoom.columns, (row, column) => {
        const weight = weights[(zoom.row + row) * map.columns + zoom.column + column]!;
        return weight !== weight ? null : table.css(tableIndex(weight, content.limit, content.signed) / 255);
      });
    }
    const style = { "font-size": LABEL, "dominant-baseline": "central" };
    if (shape.labels.left)
      eachLabel(map.queries, zoom.row, zoom.rows, h, (unit, i) => svg.text(x + layout.x - 6, y + layout.y + (i + 0.5) * h, unit.text, { ...style, fill: ink(unit, palette), "text-anchor": "end" }));
    if (shape.labels.top)
      eachLabel(map.keys, zoom.column, zoom.columns, w, (unit, i) => {
        const [px, py] = [x + layout.x + (i + 0.5) * w, y + layout.y - 6];
        svg.text(px, py, unit.text, { ...style, fill: ink(unit, palette), transform: `rotate(-90 ${px.toFixed(2)} ${py.toFixed(2)})` });
      });
    vectorBar(svg, [x, y], barBox(layout), table, content, palette);
  }
}

/** Where the color bar is: beside the cells, or below them. */
function barBox(layout: HeatLayout): [number, number, number, number] {
  const gap = layout.marginal ? layout.marginal + 16 : 10;
  if (layout.bar === "right") return [layout.x + layout.width + gap, layout.y, 10, Math.min(160, layout.height)];
  return [layout.x, layout.y + layout.height + gap - 2, Math.min(140, layout.width), 8];
}

function vectorBar(svg: Svg, [dx, dy]: [number, number], [left, top, width, height]: [number, number, number, number], table: ColorTable, content: HeatContent, palette: Palette): void {
  const [x, y, across] = [dx + left, dy + top, width > height];
  for (let i = 0; i < 64; i++) {
    if (across) svg.rect(x + (i * width) / 64, y, width / 64 + 0.3, height, { fill: table.css((i + 0.5) / 64) });
    else svg.rect(x, y + (i * height) / 64, width, height / 64 + 0.3, { fill: table.css(1 - (i + 0.5) / 64) });
  }
  const style = { "font-size": LABEL, fill: palette.quiet, "dominant-baseline": "central" };
  for (const [share, text] of barMarks(content.limit, content.signed, findBeyond(content.weights, content.limit))) {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    if (across) svg.text(x + share * width, y + height + 9, text, { ...style, "text-anchor": anchor });
    else svg.text(x + width + 5, y + (1 - share) * height, text, style);
  }
}

function ink(unit: Unit, palette: Palette): string {
  return unit.special ? palette.quiet : palette.ink;
}

function inside(index: number, start: number, count: number): boolean {
  return index >= start && index < start + count;
}

function cut(weights: Float32Array, columns: number, zoom: Zoom): Float32Array {
  if (zoom.column === 0 && zoom.row === 0 && zoom.columns === columns && zoom.rows * columns === weights.length) return weights;
  const part = new Float32Array(zoom.rows * zoom.columns);
  for (let row = 0; row < zoom.rows; row++) {
    const from = (zoom.row + row) * columns + zoom.column;
    part.set(weights.subarray(from, from + zoom.columns), row * zoom.columns);
  }
  return part;
}

/** The width that labels of units need. */
export function labelWidth(context: CanvasRenderingContext2D, units: readonly Unit[], start = 0, count = units.length): number {
  context.font = `${LABEL}px ${FONT}`;
  let widest = 0;
  for (let i = start; i < Math.min(units.length, start + count, start + 400); i++) widest = Math.max(widest, context.measureText(units[i]!.text).width);
  return Math.ceil(Math.min(104, widest)) + 12;
}

/** Call a function for every n-th unit, so that labels do not overlap. */
function eachLabel(units: readonly Unit[], start: number, count: number, cell: number, act: (unit: Unit, index: number) => void): void {
  const step = Math.max(1, Math.ceil(11.5 / cell));
  for (let i = 0; i < count; i += step) act(units[start + i]!, i);
}
