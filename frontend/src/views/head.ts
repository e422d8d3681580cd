/** One head: its text, a heat map with crosshair and marginals, and links between tokens. */
import { make, makeButton } from "../dom";
import { count, errorAt, formatNumber, formatWeight, noteError, quote, withError } from "../format";
import { type Cell, derive, HeatMap, type Zoom } from "../heatmap";
import { differencePair, otherLens, whyNoDifference } from "../lenses";
import { findLinks, Links } from "../links";
import { difference } from "../pairs";
import { PatchPicture, spread } from "../picture";
import { drawCall, mapsOf, noteHidden, withWords } from "../python";
import { readChosen, readHidden, readMeans, readShare, sumChosen } from "../reading";
import { selectedUnits, selectUnit, stepUnit } from "../selection";
import { Strip } from "../strip";
import { Svg } from "../svg";
import { Tip } from "../tip";
import type { MapData, OpenView, Table, View, Viewer } from "../types";

const NARROW = 760;
const ALL_LINKS = 72;

/** What is under the pointer: a cell of the map, or a token of one side. */
interface Pointed {
  side: "query" | "key";
  index: number;
  cell: Cell | null;
  /** The number of a bar beside the map. */
  bar?: number;
}

class Head implements OpenView {
  private readonly box = make("div", "hs-head");
  private readonly heat: HeatMap;
  private readonly links: Links;
  private readonly queryStrip: Strip;
  private readonly keyStrip: Strip;
  private readonly picture: PatchPicture;
  /** Over the strips of attention between two inputs. */
  private readonly sideNotes = [makeSideNote("queries"), makeSideNote("keys")] as const;
  private readonly notice = make("p", "hs-notice", { hidden: true });
  private readonly wholeButton: HTMLButtonElement;
  private readonly tip: Tip;
  private map: MapData | null = null;
  private base: MapData | null = null;
  private weights = new Float32Array(0);
  private difference = false;
  private pointed: Pointed | null = null;
  private cursor: Cell | null = null;
  private zoom: Zoom | null = null;
  private press: { point: [number, number]; cell: Cell } | null = null;
  private ask = 0;
  private key = "";
  private frame = 0;
  private alive = true;

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    this.heat = new HeatMap(viewer, "Attention map: queries are rows, keys are columns");
    this.links = new Links(viewer);
    this.queryStrip = new Strip(viewer, "Query tokens");
    this.keyStrip = new Strip(viewer, "Key tokens");
    this.picture = new PatchPicture(viewer, (token) => viewer.set({ tokens: [token] }));
    this.wholeButton = makeButton("Whole map", () => this.resetZoom(), { hidden: true });
    const main = make("div", "hs-main", {}, make("div", "hs-column", {}, this.heat.element, this.wholeButton), this.links.element);
    this.box.append(this.notice, this.picture.element, this.sideNotes[0], this.queryStrip.element, this.sideNotes[1], this.keyStrip.element, main);
    element.append(this.box);
    this.tip = new Tip(element);
    this.listenHeat();
    this.listenTokens(this.queryStrip.canvas, (event) => this.hitStrip(event, this.queryStrip, "query"));
    this.listenTokens(this.keyStrip.canvas, (event) => this.hitStrip(event, this.keyStrip, "key"));
    this.listenTokens(this.links.canvas, (event) => this.links.hit(event));
    for (const canvas of this.picture.canvases) this.listenTokens(canvas, (event) => this.hitPatch(event));
  }

  /** A patch stands for a token of the state's side; of attention between two inputs, patches are keys. */
  private hitPatch(event: MouseEvent): { side: "query" | "key"; index: number } | null {
    const token = this.picture.hit(event);
    const side = this.viewer.sheet().keys ? "key" : this.viewer.state.side;
    const index = (side === "query" ? this.map?.queries : this.map?.keys)?.findIndex((unit) => unit.tokens.includes(token)) ?? -1;
    return index < 0 ? null : { side, index };
  }

  /** On one strip for both sides, the side is the one of the state. */
  private hitStrip(event: MouseEvent, strip: Strip, side: "query" | "key"): { side: "query" | "key"; index: number } | null {
    const index = strip.hit(event);
    if (index < 0) return null;
    return { side: this.viewer.sheet().keys ? side : this.viewer.state.side, index };
  }

  private listenHeat(): void {
    const { canvas } = this.heat;
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.heat.hit(event);
      const bar = cell ? null : this.heat.hitMarginal(event);
      if (bar) return this.point({ side: bar.side, index: bar.index, cell: null, bar: bar.value }, event);
      this.point(cell ? { side: this.viewer.state.side, index: this.viewer.state.side === "query" ? cell.row : cell.column, cell } : null, event);
    });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("pointerdown", (event) => {
      const cell = this.heat.hit(event);
      if (!cell || event.button !== 0) return;
      this.press = { point: this.heat.point(event), cell };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("dblclick", () => this.resetZoom());
  }

  private release(event: PointerEvent): void {
    const [press, cell] = [this.press, this.heat.hit(event)];
    this.press = null;
    if (!press || !cell || !this.map) return;
    const [x, y] = this.heat.point(event);
    if (Math.hypot(x - press.point[0], y - press.point[1]) > 8) return this.zoomTo(press.cell, cell);
    const { side } = this.viewer.state;
    const unit = side === "query" ? this.map.queries[cell.row] : this.map.keys[cell.column];
    if (unit) selectUnit(this.viewer, unit, side, event.ctrlKey || event.metaKey || event.shiftKey);
  }

  private zoomTo(a: Cell, b: Cell): void {
    const [row, column] = [Math.min(a.row, b.row), Math.min(a.column, b.column)];
    const size = { rows: Math.abs(a.row - b.row) + 1, columns: Math.abs(a.column - b.column) + 1 };
    if (size.rows < 2 || size.columns < 2) return;
    this.zoom = { row, column, ...size };
    this.draw();
  }

  private resetZoom(): void {
    this.zoom = null;
    this.draw();
  }

  private listenTokens(canvas: HTMLCanvasElement, hit: (event: MouseEvent) => { side: "query" | "key"; index: number } | null): void {
    canvas.addEventListener("pointermove", (event) => {
      const found = hit(event);
      canvas.style.cursor = found ? "pointer" : "";
      this.point(found && { ...found, cell: null }, event);
    });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("click", (event) => {
      const found = hit(event);
      const unit = found && (found.side === "query" ? this.map?.queries : this.map?.keys)?.[found.index];
      if (unit) selectUnit(this.viewer, unit, found.side, event.ctrlKey || event.metaKey || event.shiftKey);
    });
  }

  private point(pointed: Pointed | null, event?: PointerEvent): void {
    const before = JSON.stringify(this.pointed);
    this.pointed = pointed;
    if (event && pointed && this.map) this.tip.show(event.clientX, event.clientY, this.tipLines(pointed));
    else this.tip.hide();
    if (event && this.press) this.heat.mark(null, {}, [...this.press.point, ...this.heat.point(event)]);
    else if (JSON.stringify(pointed) !== before) this.frame ||= requestAnimationFrame(() => this.drawHover());
  }

  private drawHover(): void {
    this.frame = 0;
    if (!this.alive || !this.map) return;
    const start = performance.now();
    this.drawMarks();
    this.drawTokens();
    performance.measure("headscope:hover", { start, end: performance.now() });
  }

  /** What a cell or a token says under the pointer. */
  private tipLines(pointed: Pointed): string[] {
    const map = this.map!;
    const { cell } = pointed;
    if (!cell) {
      const unit = (pointed.side === "query" ? map.queries : map.keys)[pointed.index];
      if (!unit) return [];
      if (pointed.bar !== undefined) return [`${quote(unit.text)} · token ${unit.tokens.join("–")}`, `${pointed.side === "key" ? "mean weight to it" : "sum of its weights"}: ${formatNumber(pointed.bar)}`];
      const text = readChosen(map, this.weights, [pointed.index], pointed.side, this.difference);
      return [`${quote(unit.text)} · token ${unit.tokens.join("–")}`, text];
    }
    return [`${quote(map.queries[cell.row]!.text)} → ${quote(map.keys[cell.column]!.text)}`, this.cellValue(cell)];
  }

  private cellValue({ row, column }: Cell): string {
    const map = this.map!;
    const at = row * map.columns + column;
    const weight = this.weights[at]!;
    if (Number.isNaN(weight)) return "masked: this query cannot see this key";
    if (!this.difference || !this.base) return formatWeight(weight, map, map.keys[column]!.tokens.length);
    const parts = this.ordered(map, this.base).map((each) => formatNumber(each.weights[at]!));
    return `${this.quantity()} = ${withError(weight, errorAt([map, this.base], at, map.keys[column]!.tokens.length))} (${parts.join(" − ")})`;
  }

  update(): void {
    void this.load(++this.ask).catch((error) => this.viewer.fail(error));
  }

  private async load(ask: number): Promise<void> {
    const { viewer } = this;
    const { sheet, lens, layer, head, words, special, start, count } = viewer.state;
    const began = performance.now();
    const [map, base] = await Promise.all([
      viewer.map(sheet, lens, layer, head),
      this.difference && otherLens(viewer) ? viewer.map(sheet, otherLens(viewer), layer, head) : null,
      viewer.sheet().picture ? this.picture.load() : null,
    ]);
    if (ask !== this.ask || !this.alive) return;
    const shape = [sheet, words, special, start, count].join("|");
    if (shape !== this.key) {
      this.zoom = null;
      this.cursor = null;
      this.pointed = null;
      this.key = shape;
    }
    this.map = map;
    this.base = base;
    this.weights = (base ? difference(...this.ordered(map, base)) : map.weights) as Float32Array<ArrayBuffer>;
    this.draw();
    viewer.drawn({ layer, head, lens, ms: performance.now() - began });
    viewer.speak(this.describe());
  }

  /** The map of the lens and that of the other one in the order in which they are subtracted. */
  private ordered(map: MapData, base: MapData): [MapData, MapData] {
    return differencePair(this.viewer)[0] === this.viewer.state.lens ? [map, base] : [base, map];
  }

  private signed(): boolean {
    return this.base !== null || this.map!.signed;
  }

  private draw(): void {
    const { map } = this;
    if (!map || !this.alive) return;
    this.notice.hidden = !map.missing;
    this.notice.textContent = map.missing ?? "";
    for (const part of [this.heat.element, this.links.element, this.queryStrip.element]) part.hidden = map.missing !== null;
    const cross = this.viewer.sheet().keys !== null;
    this.picture.element.hidden = !this.viewer.sheet().picture || map.missing !== null;
    for (const part of [this.keyStrip.element, ...this.sideNotes]) part.hidden = !cross || map.missing !== null;
    this.wholeButton.hidden = !this.zoom;
    if (map.missing) return;
    const width = Math.max(280, this.element.clientWidth);
    const narrow = width < NARROW;
    const { limit } = derive(this.weights, map.rows, map.columns);
    const heatWidth = narrow ? width : Math.min(width * 0.56, 720);
    const shape = { width: heatWidth, height: this.height(narrow), labels: { left: true, top: true }, marginals: true, bar: "right" as const, largestCell: 34 };
    this.heat.draw({ map, weights: this.weights, signed: this.signed(), limit, label: "", zoom: this.zoom }, shape);
    this.drawMarks();
    this.drawTokens();
  }

  private height(narrow: boolean): number {
    return this.viewer.options.height ?? (narrow ? Math.min(660, Math.max(420, 0.95 * this.element.clientWidth)) : 600);
  }

  /** Rows or columns that the strips and links follow: what is pointed at, else what is selected. */
  private active(): { side: "query" | "key"; indices: number[] } {
    const { map, pointed, cursor } = this;
    const { side } = this.viewer.state;
    if (pointed) return { side: pointed.side, indices: [pointed.index] };
    const indices = selectedUnits(this.viewer, side === "query" ? map!.queries : map!.keys);
    if (!indices.length && cursor) return { side, indices: [side === "query" ? cursor.row : cursor.column] };
    return { side, indices };
  }

  private drawMarks(): void {
    const { side } = this.viewer.state;
    const chosen = selectedUnits(this.viewer, side === "query" ? this.map!.queries : this.map!.keys);
    const { side: activeSide, indices } = this.active();
    const lines = this.pointed && !this.pointed.cell ? { [activeSide === "query" ? "rows" : "columns"]: [...indices] } : {};
    const selected = { [side === "query" ? "rows" : "columns"]: chosen };
    this.heat.mark(this.pointed?.cell ?? (this.pointed ? null : this.cursor), { ...selected, ...lines });
  }

  private drawTokens(): void {
    const map = this.map!;
    const { side, indices } = this.active();
    const { limit, columns } = derive(this.weights, map.rows, map.columns);
    const sums = indices.length ? sumChosen(map, this.weights, indices, side) : columns;
    const largest = Math.max(limit, indices.length > 1 ? maxSize(sums) : 0);
    this.drawStrips(side, indices, sums, indices.length ? largest : maxSize(columns));
    this.drawPicture(side, indices, sums);
    const chosen = indices.length ? (side === "query" ? { rows: indices } : { columns: indices }) : null;
    const long = Math.max(map.rows, map.columns) > ALL_LINKS;
    const links = !chosen && long ? [] : findLinks(map, this.weights, this.viewer.state.mass, chosen);
    const width = Math.max(280, this.element.clientWidth);
    const narrow = width < NARROW;
    const [heatWidth, heatHeight] = this.heat.layout?.total ?? [0, 400];
    const space = narrow ? width : Math.max(260, Math.min(560, width - heatWidth - 28));
    const height = Math.min(Math.max(heatHeight - 10, Math.min(600, 18 * Math.max(map.rows, map.columns) + 24)), 640);
    this.links.draw(map, links, limit, space, height, chosen);
    this.links.note(!chosen && long ? "Point at a token, or select one, to see its links." : "");
  }

  /** The weights of the other side's tokens on their patches; of attention between two inputs, those of the keys. */
  private drawPicture(side: "query" | "key", indices: readonly number[], sums: Float32Array): void {
    const map = this.map!;
    const sheet = this.viewer.sheet();
    if (!sheet.picture) return;
    const fromKeys = side === "key" && indices.length > 0;
    const values = fromKeys && sheet.keys ? derive(this.weights, map.rows, map.columns).columns : sums;
    const weights = spread(values, fromKeys && !sheet.keys ? map.queries : map.keys, sheet.picture.keyRow.length);
    const own = side === "query" ? (sheet.keys ? [] : map.queries) : map.keys;
    const chosen = new Set(indices.flatMap((index) => own[index]?.tokens ?? []));
    this.picture.draw(weights, chosen, this.signed(), Math.max(280, this.element.clientWidth));
  }

  private drawStrips(side: "query" | "key", indices: readonly number[], sums: Float32Array, limit: number): void {
    const map = this.map!;
    const width = Math.max(240, this.element.clientWidth - 14);
    const cross = this.viewer.sheet().keys !== null;
    const [chosen, none] = [new Set(indices), new Set<number>()];
    const hovered = this.pointed && !this.pointed.cell ? this.pointed.index : -1;
    const blank = (length: number): Float32Array => new Float32Array(length);
    if (!cross) return this.queryStrip.draw(map.queries, sums, limit, this.signed(), chosen, hovered, width);
    const toKeys = side === "query" || !indices.length;
    this.queryStrip.draw(map.queries, toKeys ? blank(map.rows) : sums, limit, this.signed(), side === "query" ? chosen : none, side === "query" ? hovered : -1, width);
    this.keyStrip.draw(map.keys, toKeys ? sums : blank(map.columns), limit, this.signed(), side === "key" ? chosen : none, side === "key" ? hovered : -1, width);
  }

  keydown(event: KeyboardEvent): boolean {
    const { map, viewer } = this;
    if (!map) return false;
    if (event.key.toLowerCase() === "d") {
      if (!event.repeat && otherLens(viewer) && !viewer.lens().merged) this.askDifference();
      return true;
    }
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (event.shiftKey && move) return this.moveCursor(move);
    const units = viewer.state.side === "query" ? map.queries : map.keys;
    if (event.key === "," || event.key === ".") {
      stepUnit(viewer, units, event.key === "." ? 1 : -1);
      const at = selectedUnits(viewer, units)[0] ?? 0;
      this.queryStrip.reveal(at);
      return true;
    }
    if (event.key === " " && this.cursor) {
      const unit = units[viewer.state.side === "query" ? this.cursor.row : this.cursor.column];
      if (unit) selectUnit(viewer, unit, viewer.state.side, true);
      return true;
    }
    if (event.key === "Escape" && (this.zoom || this.cursor)) {
      this.cursor = null;
      viewer.status(null);
      this.resetZoom();
      return true;
    }
    return false;
  }

  private moveCursor([down, right]: [number, number]): boolean {
    const map = this.map!;
    const { row, column } = this.cursor ?? { row: down > 0 ? -1 : 0, column: right > 0 ? -1 : 0 };
    this.cursor = { row: Math.max(0, Math.min(map.rows - 1, row + down)), column: Math.max(0, Math.min(map.columns - 1, column + right)) };
    const said = `${quote(map.queries[this.cursor.row]!.text)} → ${quote(map.keys[this.cursor.column]!.text)}: ${this.cellValue(this.cursor)}`;
    this.drawMarks();
    this.drawTokens();
    this.viewer.status(said);
    this.viewer.announce(said);
    return true;
  }

  keyup(event: KeyboardEvent): void {
    if (event.key.toLowerCase() === "d" && this.difference) this.showDifference(false);
  }

  /** Show the difference of the lenses, or say why there is none. */
  private askDifference(): void {
    const why = whyNoDifference(...differencePair(this.viewer));
    if (!why) return this.showDifference(true);
    this.viewer.status(why);
    this.viewer.announce(why);
  }

  private showDifference(on: boolean): void {
    this.difference = on;
    this.update();
  }

  async table(): Promise<Table> {
    const map = this.map ?? (await this.viewer.map(this.viewer.state.sheet, this.viewer.state.lens, this.viewer.state.layer, this.viewer.state.head));
    const { side } = this.viewer.state;
    const wanted = new Set(selectedUnits(this.viewer, side === "query" ? map.queries : map.keys));
    const rows: Table["rows"] = [];
    const weights = this.map ? this.weights : map.weights;
    for (let row = 0; row < map.rows; row++)
      for (let column = 0; column < map.columns; column++) {
        if (wanted.size && !wanted.has(side === "query" ? row : column)) continue;
        const weight = weights[row * map.columns + column]!;
        rows.push([map.queries[row]!.tokens[0]!, map.queries[row]!.text, map.keys[column]!.tokens[0]!, map.keys[column]!.text, Number.isNaN(weight) ? null : weight]);
      }
    const only = wanted.size ? `, only ${side === "query" ? "from" : "to"} the ${count(wanted.size, this.viewer.state.words ? "selected word" : "selected token")}` : "";
    return { caption: `${this.viewer.headName()}, ${this.difference ? this.quantity() : this.viewer.state.lens}${only}.${noteError([this.base ? [map, this.base] : [map]])}`, columns: ["query", "query token", "key", "key token", this.quantity()], rows };
  }

  private quantity(): string {
    return this.difference ? differencePair(this.viewer).join(" − ") : this.viewer.lens().quantity;
  }

  async svg(): Promise<string> {
    const { viewer } = this;
    this.pointed = null;
    this.draw();
    const [heatWidth, heatHeight] = this.heat.layout?.total ?? [0, 0];
    const [linksWidth, linksHeight] = this.links.size();
    const [pictureWidth, pictureHeight] = viewer.sheet().picture ? this.picture.total() : [0, 0];
    const below = Math.max(heatHeight, linksHeight) + 40;
    const svg = new Svg(Math.max(heatWidth + linksWidth + 40, pictureWidth + 16), below + (pictureHeight ? pictureHeight + 12 : 0), viewer.palette.background, this.describe());
    svg.text(8, 20, [viewer.headName(), viewer.state.lens, this.quantity(), viewer.sheet().model].join(" · "), { "font-size": 14, "font-weight": 600, fill: viewer.palette.ink });
    this.heat.vectors(svg, 8, 32);
    this.links.vectors(svg, heatWidth + 28, 32);
    if (pictureHeight) this.picture.vectors(svg, 8, below);
    return svg.toString();
  }

  python(): string {
    const { viewer } = this;
    const { layer, head, side, tokens } = viewer.state;
    const maps = mapsOf(viewer.sheet(), viewer.state.lens);
    const options = { lens: maps.lens, layer, head: viewer.lens().merged ? undefined : head };
    const row = side === "query" && tokens.length ? { query: tokens[0]! } : { mean: true };
    const overlay = viewer.sheet().picture ? `\n${drawCall(maps.what, "overlay", { ...options, ...row })}` : "";
    return `${drawCall(withWords(maps, viewer.state), "matrix", options)}${noteHidden(viewer.state, maps)}${overlay}`;
  }

  describe(): string {
    const { viewer, map } = this;
    if (!map) return "";
    const name = `${viewer.headName()}, ${this.difference ? this.quantity() : viewer.state.lens}`;
    if (map.missing) return `${name}: ${map.missing}`;
    const { side } = viewer.state;
    const chosen = selectedUnits(viewer, side === "query" ? map.queries : map.keys);
    const { columns } = derive(this.weights, map.rows, map.columns);
    const main = chosen.length ? readChosen(map, this.weights, chosen, side, this.difference) : readMeans(map, columns, this.difference);
    return [`${name}: ${main}`, readShare(viewer), readHidden(map, { rows: side === "query" ? chosen : [] })].filter(Boolean).join(" ");
  }

  destroy(): void {
    this.alive = false;
    cancelAnimationFrame(this.frame);
    this.tip.element.remove();
    this.box.remove();
  }
}

function makeSideNote(side: string): HTMLElement {
  return make("p", "hs-side", {}, side);
}

function maxSize(values: Float32Array): number {
  let largest = 0;
  for (const value of values) if (Math.abs(value) > largest) largest = Math.abs(value);
  return largest;
}

export const headView: View = {
  name: "head",
  title: "One head",
  key: "2",
  controls: ["lens", "layer", "head", "side", "mass", "words", "special", "window", "search"],
  available: (viewer) => (viewer.header.sheets[viewer.state.sheet]?.lenses.length ?? 0) > 0,
  open: (viewer, element) => new Head(viewer, element),
};
