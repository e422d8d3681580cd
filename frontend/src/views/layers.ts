/** How attention reaches a token through the layers: tokens across, layers upwards, a line for each edge. */
import { fitCanvas, fitText, FONT, makeCanvas, tableIndex } from "../canvas";
import type { ColorTable, Palette } from "../colors";
import { make, setOptions } from "../dom";
import { formatNumber, formatPercent, quote } from "../format";
import { type Edge, followCapacities, followProducts, keepLargest, keptShare, relevance } from "../paths";
import { drawCall, mapsOf } from "../python";
import { nameLargest } from "../reading";
import { CanvasSurface, type Surface, toSvg } from "../surface";
import { Tip } from "../tip";
import type { LensHeader, OpenView, Sheet, Table, View, Viewer } from "../types";

const [LEFT, TOP, RIGHT, BARS] = [58, 30, 12, 74];
const CONTRAST = { edges: 0.5, capacities: 1.4 }; // powers of the weight: few edges are large, but many capacities
const LINES = { edges: "the weight of all paths through an edge", capacities: "the most that can flow through an edge, which bounds a flow and is not one" };
const HIGHEST = 72;
const STRIP = 12; // height of a layer in the strip of flows

/** Where everything is, in CSS pixels. */
export interface LayersLayout {
  width: number;
  height: number;
  column: number;
  gap: number;
  layers: number;
  tokens: number;
  labels: number;
  strip: boolean;
  /** Where the bars begin, and where the strip of flows begins. */
  bars: number;
  strips: number;
}

/** Fit tokens across a width and layers into a height; columns are not narrower than labels, and the picture scrolls. */
export function layoutLayers(layers: number, tokens: number, width: number, height: number, labels: number, strip: boolean): LayersLayout {
  const narrowest = tokens > 160 ? 5 : 11;
  const column = Math.max(narrowest, Math.min(64, (width - LEFT - RIGHT) / tokens));
  const around = TOP + BARS + labels + (strip ? layers * STRIP + 30 : 0) + 40;
  const gap = Math.max(20, Math.min(HIGHEST, (height - around) / layers));
  const bars = TOP + layers * gap + 16;
  const strips = bars + BARS + labels + 26;
  return { width: LEFT + tokens * column + RIGHT, height: strip ? strips + layers * STRIP + 6 : strips - 18, column, gap, layers, tokens, labels, strip, bars, strips };
}

/** The token at a point, and the row of nodes next to it: 0 is the input. Below the input the row is -1. */
export function nodeAt(layout: LayersLayout, x: number, y: number): { token: number; row: number } | null {
  const token = Math.floor((x - LEFT) / layout.column);
  if (token < 0 || token >= layout.tokens || y < 0 || y > layout.height) return null;
  const row = Math.round((TOP + layout.layers * layout.gap - y) / layout.gap);
  return { token, row: y > layout.bars - 4 ? -1 : Math.max(0, Math.min(layout.layers, row)) };
}

/** Why the graph of a lens cannot be followed down to the input; null where it can. */
export function whyIncomplete(sheet: Sheet, lens: LensHeader): string | null {
  const start = Number(/[:,]start=(\d+)/.exec(lens.name)?.[1] ?? 0);
  const whole = sheet.layers.every((label, index) => label === start + index);
  return whole ? null : `The graph of ${lens.name} needs every layer from ${start} on, but these maps have layers ${sheet.layers.join(", ")}. Show the maps of all layers.`;
}

/** What is drawn. */
interface Drawn {
  lens: LensHeader;
  kind: "edges" | "capacities";
  target: number;
  top: number;
  passing: Float64Array[];
  kept: Edge[][];
  /** Relevance of the tokens at each row of nodes; of edges only. */
  rows: Float64Array[] | null;
  /** The row of the target in the map of the top layer. */
  scores: Float32Array;
  /** The row of the target in the map of each layer; of capacities only. */
  byLayer: Float32Array[];
}

class Layers implements OpenView {
  private readonly canvas: HTMLCanvasElement;
  private readonly overlay = make("canvas", "hs-over", { "aria-hidden": "true" });
  private readonly box: HTMLElement;
  private readonly wide: HTMLElement;
  private readonly controls: HTMLElement;
  private readonly sentence = make("p", "hs-instead", { hidden: true });
  private readonly lenses = make("select", "hs-select");
  private readonly targets = make("select", "hs-select");
  private readonly tops = make("select", "hs-select");
  private readonly mass = make("input", "", { type: "range", min: 0.05, max: 1, step: 0.05 });
  private readonly massText = make("output", "hs-range");
  private readonly tip: Tip;
  private layout: LayersLayout | null = null;
  private drawn: Drawn | null = null;
  private ask = 0;
  private spoken = "";

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    this.canvas = makeCanvas(viewer, "Attention through the layers");
    this.box = make("div", "hs-stack", {}, this.canvas, this.overlay);
    this.wide = make("div", "hs-wide", {}, this.box);
    const slider = make("label", "hs-field", { title: "Of each layer, the largest edges are drawn until this share of its total" }, make("span", "hs-label", {}, "Mass drawn"), this.mass, this.massText);
    this.controls = make("div", "hs-tools", { role: "group", "aria-label": "Lens, token and mass" },
      field("Lens", this.lenses), field("To the token", this.targets), field("above layer", this.tops), slider);
    element.append(this.controls, this.sentence, this.wide);
    this.tip = new Tip(element);
    this.listen();
  }

  private listen(): void {
    const { viewer } = this;
    this.lenses.addEventListener("change", () => viewer.set({ lens: this.lenses.value }));
    this.targets.addEventListener("change", () => this.choose(Number(this.targets.value)));
    this.tops.addEventListener("change", () => this.setTop(Number(this.tops.value)));
    this.mass.addEventListener("input", () => viewer.set({ mass: Number(this.mass.value) }));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => {
      const node = this.hit(event);
      if (node) this.choose(node.token);
    });
  }

  private choose(token: number): void {
    this.viewer.set({ tokens: [token], side: "query" });
  }

  private setTop(layer: number): void {
    this.viewer.set({ top: layer === this.viewer.sheet().layers.at(-1) ? -1 : layer });
  }

  /** The chosen lens if it has a graph, else the first that has one. */
  private lens(): LensHeader {
    const sheet = this.viewer.sheet();
    const graphs = sheet.lenses.filter((lens) => lens.graph);
    return graphs.find((lens) => lens.name === this.viewer.state.lens) ?? graphs[0]!;
  }

  /** The chosen token; without one the first, or the last under a causal mask. */
  private target(): number {
    const { state } = this.viewer;
    const sheet = this.viewer.sheet();
    const chosen = state.side === "query" || !sheet.keys ? state.tokens[0] : undefined;
    return chosen ?? (sheet.visible === "causal" ? sheet.queries.text.length - 1 : 0);
  }

  update(): void {
    void this.load(++this.ask).catch((error) => this.viewer.fail(error));
  }

  private async load(ask: number): Promise<void> {
    const { viewer } = this;
    const [sheet, lens] = [viewer.sheet(), this.lens()];
    const why = whyIncomplete(sheet, lens);
    this.sentence.hidden = why === null;
    this.wide.hidden = why !== null;
    this.sentence.textContent = why ?? "";
    this.fillControls(sheet, lens);
    if (why !== null) {
      this.drawn = null;
      return viewer.drawn();
    }
    const drawn = await this.read(sheet, lens);
    if (ask !== this.ask) return;
    this.drawn = drawn;
    this.draw();
    viewer.drawn();
    this.speak();
  }

  private async read(sheet: Sheet, lens: LensHeader): Promise<Drawn> {
    const { viewer } = this;
    const [target, top, index, kind] = [this.target(), this.topIndex(sheet), viewer.state.sheet, lens.graph!];
    const labels = sheet.layers.slice(0, top + 1);
    const graphs = await Promise.all(labels.map((layer) => viewer.graph(index, lens.name, layer)));
    const wanted = kind === "capacities" ? labels : labels.slice(-1);
    const maps = await Promise.all(wanted.map((layer) => viewer.rawMap(index, lens.name, layer, 0)));
    const byLayer = maps.map((map) => map.weights.subarray(target * map.columns, (target + 1) * map.columns));
    const tokens = sheet.queries.text.length;
    const passing = (kind === "edges" ? followProducts : followCapacities)(graphs, tokens, target);
    const kept = keepLargest(passing, tokens, target, viewer.state.mass);
    const rows = kind === "edges" ? relevance(graphs, tokens, target) : null;
    return { lens, kind, target, top, passing, kept, rows, scores: byLayer.at(-1)!, byLayer: kind === "capacities" ? byLayer : [] };
  }

  private topIndex(sheet: Sheet): number {
    const found = sheet.layers.indexOf(this.viewer.state.top);
    return found < 0 ? sheet.layers.length - 1 : found;
  }

  private fillControls(sheet: Sheet, lens: LensHeader): void {
    const names = sheet.lenses.filter((each) => each.graph).map((each) => [each.name, each.name] as const);
    setOptions(this.lenses, names, lens.name);
    setOptions(this.targets, sheet.queries.text.map((text, index) => [String(index), `${index} · ${text}`] as const), String(this.target()));
    setOptions(this.tops, sheet.layers.map((layer) => [String(layer), String(layer)] as const), String(sheet.layers[this.topIndex(sheet)]));
    this.mass.value = String(this.viewer.state.mass);
    this.massText.value = `${Math.round(100 * this.viewer.state.mass)} %`;
  }

  private draw(): void {
    const { viewer } = this;
    const drawn = this.drawn!;
    const texts = viewer.sheet().queries.text;
    const space = viewer.options.height ?? Math.max(560, window.innerHeight) - 250;
    const labels = Math.min(96, Math.max(...texts.map((text) => textWidth(text)))) + 8;
    this.layout = layoutLayers(drawn.top + 1, texts.length, this.element.clientWidth, space, labels, drawn.kind === "capacities");
    const context = fitCanvas(this.canvas, this.layout.width, this.layout.height);
    paintLayers(new CanvasSurface(context, viewer.palette), this.picture());
    fitCanvas(this.overlay, this.layout.width, this.layout.height);
    this.showTarget();
  }

  private picture(): Picture {
    const { viewer } = this;
    return { drawn: this.drawn!, layout: this.layout!, sheet: viewer.sheet(), palette: viewer.palette, colors: viewer.colors(false) };
  }

  /** Scroll the target into sight. */
  private showTarget(): void {
    const { layout, wide, drawn } = this;
    if (!layout || layout.width <= wide.clientWidth) return;
    const x = LEFT + drawn!.target * layout.column;
    if (x < wide.scrollLeft || x > wide.scrollLeft + wide.clientWidth - 40) wide.scrollLeft = x - wide.clientWidth / 2;
  }

  private hit(event: MouseEvent): { token: number; row: number } | null {
    const frame = this.canvas.getBoundingClientRect();
    return this.layout && this.drawn ? nodeAt(this.layout, event.clientX - frame.left, event.clientY - frame.top) : null;
  }

  private hover(event: PointerEvent): void {
    const node = this.hit(event);
    this.canvas.style.cursor = node ? "pointer" : "";
    if (!node) return this.leave();
    this.tip.show(event.clientX, event.clientY, this.lines(node.token, node.row));
    this.markNode(node.token, node.row);
  }

  private leave(): void {
    this.tip.hide();
    if (this.layout) fitCanvas(this.overlay, this.layout.width, this.layout.height);
  }

  /** The column of a token, its name, and its own edges. */
  private markNode(token: number, row: number): void {
    const layout = this.layout!;
    const { palette } = this.viewer;
    const context = fitCanvas(this.overlay, layout.width, layout.height);
    const surface = new CanvasSurface(context, palette);
    const x = columnX(layout, token);
    context.globalAlpha = 0.12;
    surface.rect(x - layout.column / 2, TOP - 8, layout.column, layout.bars + BARS + layout.labels - TOP + 8, palette.accent);
    context.globalAlpha = 1;
    if (row >= 0) {
      for (const edge of this.drawn!.kept.flat())
        if ((edge.layer === row && edge.key === token) || (edge.layer === row - 1 && edge.query === token))
          surface.line(columnX(layout, edge.key), rowY(layout, edge.layer), columnX(layout, edge.query), rowY(layout, edge.layer + 1), { color: palette.negative, width: 2 });
      surface.dot(x, rowY(layout, row), 4, palette.negative);
    }
    const text = this.viewer.sheet().queries.text[token]!;
    const width = textWidth(text) + 8;
    const left = Math.max(0, Math.min(layout.width - width, x - width / 2));
    surface.rect(left, TOP - 25, width, 16, palette.background);
    surface.text(left + width / 2, TOP - 17, text, { color: palette.accent, bold: true, align: "center" });
  }

  private lines(token: number, row: number): string[] {
    const { viewer } = this;
    const drawn = this.drawn!;
    const sheet = viewer.sheet();
    const name = `${quote(sheet.queries.text[token]!)}, token ${token}`;
    const score = `${drawn.lens.quantity} to ${quote(sheet.queries.text[drawn.target]!)}: ${formatScore(drawn.scores[token]!)}`;
    if (row <= 0) return [name, score, "click: follow this token"];
    const above = `above layer ${sheet.layers[row - 1]}`;
    const incoming = drawn.kept[row - 1]!.filter((edge) => edge.query === token).slice(0, 3);
    const from = incoming.map((edge) => `from ${quote(sheet.queries.text[edge.key]!, 16)}: ${formatNumber(edge.weight, 2)}`);
    const share = drawn.rows ? [`share of the target here: ${formatNumber(drawn.rows[row]![token]!)}`] : [];
    return [`${name}, ${above}`, ...share, ...from];
  }

  keydown(event: KeyboardEvent): boolean {
    const sheet = this.viewer.sheet();
    const last = sheet.queries.text.length - 1;
    const [target, top] = [this.target(), this.topIndex(sheet)];
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.choose(Math.max(0, target - 1)),
      ArrowRight: () => this.choose(Math.min(last, target + 1)),
      ",": () => this.choose(Math.max(0, target - 1)),
      ".": () => this.choose(Math.min(last, target + 1)),
      Home: () => this.choose(0),
      End: () => this.choose(last),
      ArrowUp: () => this.setTop(sheet.layers[Math.min(sheet.layers.length - 1, top + 1)]!),
      ArrowDown: () => this.setTop(sheet.layers[Math.max(0, top - 1)]!),
    };
    const action = actions[event.key];
    action?.();
    return action !== undefined;
  }

  private speak(): void {
    const text = this.drawn ? `${this.headline()} ${this.sources()}` : "";
    if (this.spoken && this.spoken !== text) this.viewer.announce(text);
    this.spoken = text;
  }

  async table(): Promise<Table> {
    const { viewer, drawn } = this;
    const texts = viewer.sheet().queries.text;
    if (!drawn) return { caption: this.describe(), columns: ["token", "text"], rows: [] };
    const layers = viewer.sheet().layers;
    const parts = drawn.kind === "capacities" ? drawn.byLayer.slice(0, -1) : [];
    const columns = ["token", "text", `${drawn.lens.quantity}, layer ${layers[drawn.top]}`, ...parts.map((_, index) => `layer ${layers[index]}`)];
    const rows = texts.map((text, token) => [token, text, number(drawn.scores[token]!), ...parts.map((row) => number(row[token]!))]);
    return { caption: `${this.headline()} The values are those of the maps of ${drawn.lens.name}.`, columns, rows };
  }

  async svg(): Promise<string> {
    const { layout, viewer } = this;
    if (!layout || !this.drawn) return "";
    return toSvg(layout.width, layout.height, viewer.palette, this.describe(), (surface) => paintLayers(surface, this.picture()));
  }

  python(): string {
    const { viewer } = this;
    const sheet = viewer.sheet();
    const top = this.topIndex(sheet);
    const { what, lens } = mapsOf(sheet, this.lens().name);
    const layer = top === sheet.layers.length - 1 ? undefined : sheet.layers[top];
    return drawCall(what, "layered", { query: this.target(), layer, lens, mass: viewer.state.mass });
  }

  private headline(): string {
    const drawn = this.drawn!;
    const sheet = this.viewer.sheet();
    return `${drawn.lens.name}: what reaches ${quote(sheet.queries.text[drawn.target]!)} (token ${drawn.target}) above layer ${sheet.layers[drawn.top]}.`;
  }

  private sources(): string {
    const drawn = this.drawn!;
    const texts = this.viewer.sheet().queries.text;
    const words = nameLargest(drawn.scores, (token) => quote(texts[token]!, 18), 3);
    return words ? `Most comes from ${words}.` : "";
  }

  describe(): string {
    const { drawn } = this;
    if (!drawn) return this.sentence.textContent ?? "";
    const shares = drawn.passing.map((cells, layer) => keptShare(cells, drawn.kept[layer]!));
    const [low, high] = [formatPercent(Math.min(...shares)), formatPercent(Math.max(...shares))];
    const range = low === high ? low : `${low.replace(" %", "")} to ${high}`;
    const negative = drawn.kept.flat().some((edge) => edge.weight < 0 && edge.query !== edge.key) ? "; dashed ones are below zero" : "";
    const strip = drawn.kind === "capacities" ? " The strip below has the flow of each layer's map." : "";
    return `${this.headline()} ${this.sources()} Lines: ${LINES[drawn.kind]}, the largest ${range} of each layer; grey ones stay at their token${negative}. Bars: ${drawn.lens.quantity} from each token.${strip}`;
  }

  destroy(): void {
    this.ask = -1;
    for (const part of [this.controls, this.sentence, this.wide, this.tip.element]) part.remove();
  }
}

function field(label: string, select: HTMLSelectElement): HTMLElement {
  return make("label", "hs-field", {}, make("span", "hs-label", {}, label), select);
}

function number(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

function formatScore(value: number): string {
  return Number.isNaN(value) ? "cannot be reached" : formatNumber(value);
}

let measure: CanvasRenderingContext2D | null = null;

function textWidth(text: string): number {
  measure ??= document.createElement("canvas").getContext("2d")!;
  measure.font = `600 11px ${FONT}`;
  return measure.measureText(text).width;
}

function fitLabel(text: string, width: number): string {
  textWidth(text);
  return fitText(measure!, text, width);
}

function columnX(layout: LayersLayout, token: number): number {
  return LEFT + (token + 0.5) * layout.column;
}

function rowY(layout: LayersLayout, row: number): number {
  return TOP + (layout.layers - row) * layout.gap;
}

interface Picture {
  drawn: Drawn;
  layout: LayersLayout;
  sheet: Sheet;
  palette: Palette;
  colors: ColorTable;
}

function paintLayers(surface: Surface, picture: Picture): void {
  paintGrid(surface, picture);
  paintEdges(surface, picture);
  paintNodes(surface, picture);
  paintBars(surface, picture);
  paintTokens(surface, picture);
  if (picture.layout.strip) paintStrip(surface, picture);
}

/** Names of the layers, and a faint line for each. */
function paintGrid(surface: Surface, { layout, sheet, palette }: Picture): void {
  const step = Math.ceil(13 / layout.gap);
  for (let row = 0; row <= layout.layers; row++) {
    const y = rowY(layout, row);
    surface.line(LEFT, y, layout.width - RIGHT, y, { color: palette.faint, width: 0.5 });
    const label = row ? `L${sheet.layers[row - 1]}` : sheet.layers[0] ? `below L${sheet.layers[0]}` : "input";
    if (row === 0 || (layout.layers - row) % step === 0) surface.text(LEFT - 10, y, label, { color: palette.quiet, align: "right" });
  }
}

/** Faint edges first; those that stay at their token are grey, those below zero dashed. */
function paintEdges(surface: Surface, { drawn, layout, palette }: Picture): void {
  const all = drawn.kept.flat();
  const stays = (edge: Edge): boolean => edge.query === edge.key;
  const largest = [true, false].map((staying) => Math.max(0, ...all.filter((edge) => stays(edge) === staying).map((edge) => Math.abs(edge.weight))) || 1);
  const sized = all.map((edge) => ({ edge, size: (Math.abs(edge.weight) / largest[stays(edge) ? 0 : 1]!) ** CONTRAST[drawn.kind] }));
  sized.sort((a, b) => Number(stays(b.edge)) - Number(stays(a.edge)) || a.size - b.size);
  for (const { edge, size } of sized) {
    const color = stays(edge) ? palette.quiet : edge.weight < 0 ? palette.negative : palette.positive;
    surface.line(columnX(layout, edge.key), rowY(layout, edge.layer), columnX(layout, edge.query), rowY(layout, edge.layer + 1), {
      color,
      alpha: 0.08 + 0.87 * size,
      width: 0.5 + 2.2 * size,
      dash: edge.weight < 0 && !stays(edge),
    });
  }
}

/** A dot for each token at each layer, larger where more of the target passes. */
function paintNodes(surface: Surface, { drawn, layout, palette }: Picture): void {
  const touched = new Set(drawn.kept.flat().flatMap((edge) => [`${edge.layer} ${edge.key}`, `${edge.layer + 1} ${edge.query}`]));
  for (let row = 0; row <= layout.layers; row++)
    for (let token = 0; token < layout.tokens; token++) {
      const share = Math.abs(drawn.rows?.[row]?.[token] ?? 0);
      const used = touched.has(`${row} ${token}`);
      if (used || layout.column >= 8) surface.dot(columnX(layout, token), rowY(layout, row), used ? 1.6 + 3.4 * Math.sqrt(Math.min(1, share)) : 1, used ? palette.ink : palette.faint);
    }
  const [x, y] = [columnX(layout, drawn.target), rowY(layout, layout.layers)];
  surface.dot(x, y, 6, palette.negative);
}

/** The scores of the input tokens; the largest of them are written. */
function paintBars(surface: Surface, { drawn, layout, palette }: Picture): void {
  const largest = Math.max(...[...drawn.scores].map((score) => (Number.isNaN(score) ? 0 : Math.abs(score)))) || 1;
  const base = layout.bars + BARS;
  const width = Math.max(1.5, Math.min(26, layout.column - 2));
  surface.text(LEFT - 10, base - 7, drawn.kind === "capacities" ? "flow" : "total", { color: palette.quiet, align: "right" });
  surface.line(LEFT, base, layout.width - RIGHT, base, { color: palette.faint });
  drawn.scores.forEach((score, token) => {
    if (!score || Number.isNaN(score)) return;
    const length = (Math.abs(score) / largest) * (BARS - 18);
    surface.rect(columnX(layout, token) - width / 2, base - length, width, length, score < 0 ? palette.negative : palette.positive);
  });
  for (const token of writableBars(drawn.scores, layout.column)) {
    const length = (Math.abs(drawn.scores[token]!) / largest) * (BARS - 18);
    const x = Math.max(LEFT + 12, Math.min(layout.width - RIGHT - 12, columnX(layout, token)));
    surface.text(x, base - length - 8, formatNumber(drawn.scores[token]!, 2), { color: palette.ink, align: "center", size: 10 });
  }
}

/** The tokens with the largest scores whose numbers do not overlap those of larger ones, eight at most. */
export function writableBars(scores: Float32Array, column: number, room = 34): number[] {
  const order = [...scores.keys()].filter((token) => scores[token]).sort((a, b) => Math.abs(scores[b]!) - Math.abs(scores[a]!));
  const chosen: number[] = [];
  for (const token of order.slice(0, 24)) if (chosen.length < 8 && chosen.every((other) => Math.abs(other - token) * column >= room)) chosen.push(token);
  return chosen;
}

function paintTokens(surface: Surface, { drawn, layout, sheet, palette }: Picture): void {
  const special = new Set(sheet.queries.special);
  const step = Math.ceil(11 / layout.column);
  const y = layout.bars + BARS + 6;
  sheet.queries.text.forEach((text, token) => {
    if (token % step && token !== drawn.target) return;
    if (token !== drawn.target && Math.abs(token - drawn.target) < step) return;
    const chosen = token === drawn.target;
    const color = chosen ? palette.negative : special.has(token) ? palette.quiet : palette.ink;
    surface.text(columnX(layout, token), y, fitLabel(text, layout.labels - 4), { color, bold: chosen, align: "right", upwards: true });
  });
  const text = sheet.queries.text[drawn.target]!;
  const width = textWidth(text);
  const x = Math.max(width / 2 + 2, Math.min(layout.width - width / 2 - 2, columnX(layout, drawn.target)));
  surface.text(x, TOP - 17, text, { color: palette.negative, bold: true, align: "center" });
}

/** What each layer's map says of the target: a row for each layer, the highest on top. */
function paintStrip(surface: Surface, { drawn, layout, palette, colors, sheet }: Picture): void {
  const values = drawn.byLayer.flatMap((row) => [...row]).filter((value) => !Number.isNaN(value));
  const limit = Math.max(0, ...values) || 1;
  surface.text(LEFT, layout.strips - 10, `${drawn.lens.quantity} of each layer's map; darkest: ${formatNumber(limit, 2)}`.replace("darkest", palette.theme === "dark" ? "brightest" : "darkest"), { color: palette.quiet });
  drawn.byLayer.forEach((row, index) => {
    const y = layout.strips + (drawn.byLayer.length - 1 - index) * STRIP;
    surface.text(LEFT - 10, y + STRIP / 2, `L${sheet.layers[index]}`, { color: palette.quiet, align: "right", size: 10 });
    row.forEach((value, token) => {
      const x = LEFT + token * layout.column;
      if (Number.isNaN(value)) surface.rect(x, y, layout.column - 0.5, STRIP - 1, palette.masked);
      else surface.rect(x, y, layout.column - 0.5, STRIP - 1, colors.css(tableIndex(value, limit, false) / 255));
    });
  });
}

export const layersView: View = {
  name: "layers",
  title: "Through layers",
  key: "5",
  controls: ["search"],
  available: (viewer) => viewer.header.sheets[viewer.state.sheet]?.lenses.some((lens) => lens.graph !== null) ?? false,
  open: (viewer, element) => new Layers(viewer, element),
};
