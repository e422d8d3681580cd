/** Lines between two columns of tokens for the largest weights. */
import { fitCanvas, fitText, FONT, makeCanvas } from "./canvas";
import { make } from "./dom";
import type { Svg } from "./svg";
import type { MapData, Unit, Viewer } from "./types";

const LINE = 13; // between labels
const INK = 250; // strengths of links, in sum, that can still be told apart

/** The largest weights of a row by size, until they are a share `mass` of its total; indices, largest first. */
export function largestByMass(row: Float32Array, mass: number): number[] {
  let total = 0;
  const found: number[] = [];
  for (let i = 0; i < row.length; i++) {
    const size = Math.abs(row[i]!);
    if (!(size > 0)) continue;
    total += size;
    found.push(i);
  }
  found.sort((a, b) => Math.abs(row[b]!) - Math.abs(row[a]!) || a - b);
  const kept: number[] = [];
  let before = 0;
  for (const index of found) {
    if (before >= mass * total - 1e-9 * total) break;
    kept.push(index);
    before += Math.abs(row[index]!);
  }
  return kept;
}

/** Indices in their order as far as each is at least a distance from all that came before it. */
export function spreadOut(indices: readonly number[], place: (index: number) => number, distance: number): number[] {
  const taken: number[] = [];
  return indices.filter((index) => {
    const at = place(index);
    if (taken.some((other) => Math.abs(other - at) < distance - 1e-6)) return false;
    taken.push(at);
    return true;
  });
}

export interface Link {
  row: number;
  column: number;
  weight: number;
}

interface Label {
  text: string;
  y: number;
  bold: boolean;
  color: string;
}

/** All links of some rows (of all: null), or to some columns, faint ones first, at most `most`. */
export function findLinks(map: MapData, weights: Float32Array, mass: number, chosen: { rows?: readonly number[]; columns?: readonly number[] } | null, most = 4000): Link[] {
  const links: Link[] = [];
  if (chosen?.columns) {
    for (const column of chosen.columns) {
      const values = Float32Array.from({ length: map.rows }, (_, row) => weights[row * map.columns + column]!);
      for (const row of largestByMass(values, mass)) links.push({ row, column, weight: values[row]! });
    }
  } else {
    for (const row of chosen?.rows ?? Array.from({ length: map.rows }, (_, index) => index)) {
      const values = weights.subarray(row * map.columns, (row + 1) * map.columns);
      for (const column of largestByMass(values, mass)) links.push({ row, column, weight: values[column]! });
    }
  }
  links.sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight));
  return links.slice(Math.max(0, links.length - most));
}

/** Two columns of tokens and the links between them. */
export class Links {
  readonly element = make("div", "hs-links");
  readonly canvas: HTMLCanvasElement;
  private readonly words = make("p", "hs-note", { hidden: true });
  private layout = { width: 0, height: 0, left: 0, right: 0, top: 24 };
  private map: MapData | null = null;
  private links: Link[] = [];
  private largest = 1;
  private ink = 0;
  private strong: { rows: ReadonlySet<number>; columns: ReadonlySet<number> } = { rows: new Set(), columns: new Set() };

  constructor(private readonly viewer: Viewer) {
    this.canvas = makeCanvas(viewer, "Links between tokens", "");
    this.element.append(this.canvas, this.words);
  }

  /** A sentence in place of links; empty: none. */
  note(text: string): void {
    this.words.hidden = !text;
    if (this.words.textContent !== text) this.words.textContent = text;
  }

  /** Width and height of the picture. */
  size(): [number, number] {
    return [this.layout.width, this.layout.height];
  }

  /** Draw links; tokens at the ends of the links of a selection are written strong. */
  draw(map: MapData, links: Link[], largest: number, width: number, height: number, chosen: { rows?: readonly number[]; columns?: readonly number[] } | null): void {
    Object.assign(this, { map, links, largest: largest || 1 });
    this.ink = links.reduce((sum, link) => sum + Math.min(1, Math.abs(link.weight) / this.largest), 0);
    this.strong = {
      rows: new Set(chosen ? links.map((link) => link.row) : []),
      columns: new Set(chosen ? links.map((link) => link.column) : []),
    };
    const side = Math.min(120, width * 0.3);
    this.layout = { width, height, left: side, right: width - side, top: 24 };
    const context = fitCanvas(this.canvas, width, height);
    const { palette } = this.viewer;
    for (const link of links) {
      const strength = Math.min(1, Math.abs(link.weight) / this.largest);
      context.strokeStyle = link.weight < 0 ? palette.negative : palette.positive;
      context.globalAlpha = this.opacity(strength);
      context.lineWidth = this.thickness(strength);
      context.setLineDash(link.weight < 0 ? [4, 3] : []);
      context.stroke(new Path2D(this.curve(link, 0, 0)));
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
    this.drawTokens(context, map.queries, "query");
    this.drawTokens(context, map.keys, "key");
    context.font = `11px ${FONT}`;
    context.fillStyle = palette.quiet;
    context.textAlign = "right";
    context.fillText("query", this.layout.left - 6, 8);
    context.textAlign = "left";
    context.fillText("key", this.layout.right + 6, 8);
  }

  /** Links of a few tokens are strong; those of all tokens are drawn over each other, the fainter the more of them there are. */
  private opacity(strength: number): number {
    return this.strong.rows.size ? 0.1 + 0.8 * strength : Math.max(0.02, (0.03 + 0.57 * strength ** 1.5) * Math.min(1, INK / this.ink));
  }

  private thickness(strength: number): number {
    return this.strong.rows.size ? 0.7 + 2.3 * strength : 0.5 + 1.5 * strength;
  }

  private y(index: number, side: "query" | "key"): number {
    const count = side === "query" ? this.map!.rows : this.map!.columns;
    const rows = Math.max(this.map!.rows, this.map!.columns);
    const pitch = Math.min(26, (this.layout.height - this.layout.top - 2) / rows);
    const space = Math.min((this.layout.height - this.layout.top - 2) / count, Math.max(pitch, 3));
    return this.layout.top + (index + 0.5) * space;
  }

  private pitch(): number {
    return this.y(1, "query") - this.y(0, "query");
  }

  private curve(link: Link, x: number, y: number): string {
    const { left, right } = this.layout;
    const [from, to] = [y + this.y(link.row, "query"), y + this.y(link.column, "key")];
    const bend = (right - left) * 0.35;
    return `M${x + left} ${from.toFixed(1)}C${x + left + bend} ${from.toFixed(1)} ${x + right - bend} ${to.toFixed(1)} ${x + right} ${to.toFixed(1)}`;
  }

  /** The tokens that are written: all, or where there is no room each n-th, or of a selection those of the largest weights. */
  private labels(units: readonly Unit[], side: "query" | "key"): Label[] {
    const { palette } = this.viewer;
    const strong = side === "query" ? this.strong.rows : this.strong.columns;
    const step = Math.max(1, Math.ceil(LINE / this.pitch()));
    const wanted = strong.size && step > 1 ? this.byStrength(side) : [...units.keys()].filter((index) => index % step === 0);
    return spreadOut(wanted, (index) => this.y(index, side), LINE).map((index) => {
      const [unit, bold] = [units[index]!, strong.has(index)];
      return { text: unit.text, y: this.y(index, side), bold, color: bold ? palette.accent : unit.special || strong.size ? palette.quiet : palette.ink };
    });
  }

  /** The tokens at the ends of links on a side, those of the largest weights first. */
  private byStrength(side: "query" | "key"): number[] {
    return [...new Set(this.links.map((link) => (side === "query" ? link.row : link.column)).reverse())];
  }

  private drawTokens(context: CanvasRenderingContext2D, units: readonly Unit[], side: "query" | "key"): void {
    context.textBaseline = "middle";
    context.textAlign = side === "query" ? "right" : "left";
    const x = side === "query" ? this.layout.left - 6 : this.layout.right + 6;
    for (const { text, y, bold, color } of this.labels(units, side)) {
      context.fillStyle = color;
      context.font = `${bold ? "600 " : ""}12px ${FONT}`;
      context.fillText(fitText(context, text, this.layout.left - 10), x, y);
    }
  }

  /** The token under the pointer, and on which side. */
  hit(event: MouseEvent): { side: "query" | "key"; index: number } | null {
    if (!this.map) return null;
    const frame = this.canvas.getBoundingClientRect();
    const side = event.clientX - frame.left < this.layout.width / 2 ? "query" : "key";
    const count = side === "query" ? this.map.rows : this.map.columns;
    const space = this.y(1, side) - this.y(0, side);
    const index = Math.floor((event.clientY - frame.top - this.layout.top) / space);
    return index >= 0 && index < count ? { side, index } : null;
  }

  /** The same as vectors. */
  vectors(svg: Svg, x: number, y: number): void {
    if (!this.map) return;
    const { palette } = this.viewer;
    for (const link of this.links) {
      const strength = Math.min(1, Math.abs(link.weight) / this.largest);
      const stroke = link.weight < 0 ? palette.negative : palette.positive;
      const style = { fill: "none", stroke, "stroke-opacity": this.opacity(strength), "stroke-width": this.thickness(strength) };
      svg.path(this.curve(link, x, y), link.weight < 0 ? { ...style, "stroke-dasharray": "4 3" } : style);
    }
    for (const [units, side, left, anchor] of [[this.map.queries, "query", this.layout.left - 6, "end"], [this.map.keys, "key", this.layout.right + 6, "start"]] as const) {
      svg.text(x + left, y + 8, side, { "font-size": 11, fill: palette.quiet, "text-anchor": anchor });
      for (const label of this.labels(units, side))
        svg.text(x + left, y + label.y, label.text, { fill: label.color, "font-weight": label.bold ? 600 : 400, "text-anchor": anchor, "dominant-baseline": "central" });
    }
  }
}
