/** All heads at once: layers as rows, heads as columns, with one number per head. */
import { codeColors, drawColorBar, fillMasked, fitCanvas, fitText, FONT, makeCanvas, wordsImage } from "../canvas";
import { make } from "../dom";
import { classColors, describeFilter, fillLegend, filterOf, makeLegend, passes, readable, setFilter } from "../filter";
import { barMarks, type Beyond, count, formatNumber, formatScalar } from "../format";
import { classLetters, type Filter, longLabel, shortLabel } from "../heads";
import { drawCall, headsCall, mapsOf } from "../python";
import { Svg } from "../svg";
import { Tip } from "../tip";
import type { OpenView, Scalar, Table, Thumbs, View, Viewer } from "../types";

/** A head's place in the grid. */
export interface GridCell {
  layer: number;
  head: number;
  x: number;
  y: number;
}

export interface GridLayout {
  cells: GridCell[];
  size: [number, number];
  columns: number;
  left: number;
  top: number;
  width: number;
  height: number;
  /** Cells follow each other and carry their own names: sorted, or one map per layer. */
  flowing: boolean;
}

const GAP = 4;
const LARGEST = 132;
const LEGEND = 44;
const READABLE = 48; // pixels across, below which layers are rather scrolled
const LINES = 8; // numbers of a head under the pointer

/** Place heads in a width and, as far as they can still be read, a height. `order` lists [layer label, head label] where they follow each other; null: by layer. */
export function layoutGrid(
  layers: readonly number[],
  heads: readonly number[],
  order: readonly (readonly [number, number])[] | null,
  width: number,
  aspect: number,
  height = Infinity,
): GridLayout {
  const flowing = order !== null;
  const [left, top] = flowing ? [0, 2] : [30, 20];
  const columns = flowing ? Math.max(1, Math.min(order.length, Math.max(heads.length, Math.floor(width / 96)))) : heads.length;
  const gap = columns > 20 ? 2 : GAP;
  const widest = Math.max(6, Math.min(LARGEST, (width - left) / columns - gap));
  const fitting = ((height - top) / layers.length - gap) / aspect; // so that all layers can be seen
  const across = flowing ? widest : Math.min(widest, Math.max(READABLE, fitting));
  const size: [number, number] = [across, Math.max(6, across * aspect)];
  const caption = flowing && across >= 30 ? 15 : 0;
  const cells = (order ?? layers.flatMap((layer) => heads.map((head) => [layer, head] as const))).map(([layer, head], index) => ({
    layer,
    head,
    x: left + (index % columns) * (across + gap),
    y: top + caption + Math.floor(index / columns) * (size[1] + gap + caption),
  }));
  const last = cells.at(-1);
  return { cells, size, columns, left, top, flowing, width: left + columns * (across + gap), height: (last?.y ?? 0) + size[1] + gap };
}

/** The cell at a point, or null. */
export function gridCellAt(layout: GridLayout, x: number, y: number): GridCell | null {
  const [w, h] = layout.size;
  return layout.cells.find((cell) => x >= cell.x && x < cell.x + w + 2 && y >= cell.y && y < cell.y + h + 2) ?? null;
}

/** The cell beside another; where cells follow each other, also that of the next row. */
export function nextCell(layout: GridLayout, at: number, [right, down]: readonly [number, number]): number {
  const column = (at % layout.columns) + right;
  return layout.flowing || (column >= 0 && column < layout.columns) ? at + right + down * layout.columns : -1;
}

/** Heads by a scalar, largest first; heads without a value last. */
export function sortHeads(layers: readonly number[], heads: readonly number[], scalar: Scalar): [number, number][] {
  const all = layers.flatMap((layer, row) => heads.map((head, column) => ({ at: [layer, head] as [number, number], value: scalar.values[row]?.[column] ?? null })));
  all.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity) || 0);
  return all.map((each) => each.at);
}

class Grid implements OpenView {
  private readonly canvas: HTMLCanvasElement;
  private readonly overlay = make("canvas", "hs-over", { "aria-hidden": "true" });
  private readonly spot = make("div", "hs-spot");
  private readonly box: HTMLElement;
  private readonly legend = make("div", "hs-classes", { role: "group", "aria-label": "Classes: click to show one" });
  private readonly tip: Tip;
  private layout: GridLayout | null = null;
  private thumbs: Thumbs | null = null;
  private pictures = new Map<string, HTMLCanvasElement>();
  private painted = "";
  private beyond: Beyond = { below: false, above: false };
  private hovered: GridCell | null = null;
  private ask = 0;
  private spoken = "";

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    this.canvas = makeCanvas(viewer, "All heads");
    this.box = make("div", "hs-stack", {}, this.canvas, this.overlay, this.spot);
    element.append(this.legend, this.box);
    this.tip = new Tip(element);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => {
      const cell = this.hit(event);
      if (cell) viewer.set({ layer: cell.layer, head: cell.head, view: "head" });
    });
  }

  update(): void {
    this.arrange(); // keys move between heads before their pictures are here
    void this.load(++this.ask).catch((error) => this.viewer.fail(error));
  }

  private async load(ask: number): Promise<void> {
    const { state } = this.viewer;
    const thumbs = await this.viewer.thumbs(state.sheet, state.lens);
    if (ask !== this.ask) return;
    this.thumbs = thumbs;
    this.paint();
    this.draw();
    performance.mark("headscope:grid", { detail: { heads: this.layout!.cells.length } });
    this.viewer.drawn();
    this.speak();
  }

  /** Tell which head is chosen, where the choice changed. */
  private speak(): void {
    const { layer, head } = this.viewer.state;
    const text = this.lines(layer, head).join(", ");
    if (this.spoken && this.spoken !== text) this.viewer.announce(text);
    this.spoken = text;
  }

  /** Turn all codes into pictures; kept until the lens or the theme changes. */
  private paint(): void {
    const { viewer } = this;
    const { state, theme } = viewer;
    const key = [state.sheet, state.lens, theme, viewer.header.title].join("|");
    if (key === this.painted || !this.thumbs) return;
    this.painted = key;
    this.pictures.clear();
    this.beyond = { below: false, above: false };
    const [sheet, lens, thumbs] = [viewer.sheet(), viewer.lens(), this.thumbs];
    const table = viewer.colors(lens.signed);
    sheet.layers.forEach((layer, row) => {
      (lens.merged ? [0] : sheet.heads).forEach((head, column) => {
        const scale = lens.scales[row]?.[column] ?? null;
        if (scale === null) return;
        const colors = codeColors(table, lens.signed, scale, lens.limit, viewer.palette.masked);
        const codes = thumbs.codes(row, column);
        const words = new Uint32Array(codes.length);
        for (let i = 0; i < codes.length; i++) words[i] = colors[codes[i]!]!;
        if (scale > lens.limit) this.noteBeyond(codes, lens.signed, Math.sqrt((1.001 * lens.limit) / scale));
        this.pictures.set(`${layer}|${head}`, wordsImage(words, thumbs.rows, thumbs.columns));
      });
    });
  }

  /** Note on which sides codes are beyond a share of the largest; 128 is the signed code of masked cells. */
  private noteBeyond(codes: Uint8Array, signed: boolean, share: number): void {
    const edge = share * (signed ? 127 : 255);
    this.beyond.above ||= codes.some((code) => code > edge && !(signed && code > 127));
    this.beyond.below ||= signed && codes.some((code) => code > 128 && 256 - code > edge);
  }

  /** The number that is written on the maps, where it has one for each of them. */
  private scalar(): Scalar | null {
    const scalar = this.viewer.scalar();
    return scalar && this.viewer.fits(scalar) ? scalar : null;
  }

  /** All numbers of what is shown: of heads, or of layers. */
  private scalars(): Scalar[] {
    const { viewer } = this;
    return viewer.scalarNames().map((name) => viewer.scalar(name)!).filter((scalar) => viewer.fits(scalar));
  }

  private setFilter(filter: Filter): void {
    const scalar = this.scalar();
    if (!scalar) return;
    setFilter(this.viewer, scalar, filter);
    this.viewer.announce(describeFilter(this.viewer, scalar));
  }

  /** Whether a head passes the filter of the number that is shown. */
  private shows(): (cell: GridCell) => boolean {
    const [scalar, { viewer }] = [this.scalar(), this];
    if (!scalar) return () => true;
    const pass = passes(viewer, scalar);
    return (cell) => pass({ layer: viewer.layerIndex(cell.layer), head: viewer.headIndex(cell.head), ...viewer.value(scalar, cell.layer, cell.head) });
  }

  private order(): [number, number][] | null {
    const { viewer } = this;
    const sheet = viewer.sheet();
    if (viewer.lens().merged) return sheet.layers.map((layer) => [layer, 0]);
    const scalar = this.scalar();
    return viewer.state.sort === "scalar" && scalar ? sortHeads(sheet.layers, sheet.heads, scalar) : null;
  }

  /** Give each head its place. */
  private arrange(): GridLayout {
    const { rows, columns } = this.viewer.lens().thumbs;
    const { layers, heads } = this.viewer.sheet();
    const aspect = Math.max(0.5, Math.min(1.6, rows / columns));
    this.layout = layoutGrid(layers, heads, this.order(), this.width(), aspect, this.space());
    return this.layout;
  }

  private width(): number {
    return Math.max(200, this.element.clientWidth);
  }

  private draw(): void {
    const { viewer } = this;
    const [shows, scalar] = [this.shows(), this.scalar()];
    fillLegend(this.legend, scalar ? makeLegend(viewer, scalar, (filter) => this.setFilter(filter)) : []);
    const layout = this.arrange();
    const context = fitCanvas(this.canvas, Math.max(layout.width, Math.min(this.width(), 320)), layout.height + LEGEND);
    context.font = `11px ${FONT}`;
    context.fillStyle = viewer.palette.quiet;
    if (!layout.flowing) this.drawAxes(context, layout);
    for (const cell of layout.cells) {
      context.globalAlpha = shows(cell) ? 1 : 0.12;
      this.drawCell(context, cell, layout);
      if (shows(cell)) this.drawNumber(context, cell, layout);
    }
    context.globalAlpha = 1;
    this.drawLegend(context, layout);
    this.mark();
  }

  /** The height of the window below the top of the grid, without its legend. */
  private space(): number {
    const { host, height } = this.viewer.options;
    if (height) return height;
    const top = this.box.getBoundingClientRect().top - this.viewer.root.getBoundingClientRect().top;
    return host === "notebook" ? Infinity : window.innerHeight - top - LEGEND - 8;
  }

  private drawAxes(context: CanvasRenderingContext2D, layout: GridLayout): void {
    const sheet = this.viewer.sheet();
    const [w, h] = layout.size;
    const step = Math.max(1, Math.ceil(26 / (w + 2)));
    context.textBaseline = "middle";
    context.textAlign = "center";
    sheet.heads.forEach((head, i) => {
      if (i % step === 0) context.fillText(`H${head}`, layout.cells[i]!.x + w / 2, 9);
    });
    context.textAlign = "left";
    const down = Math.max(1, Math.ceil(12 / (h + 2)));
    sheet.layers.forEach((layer, i) => {
      if (i % down === 0) context.fillText(`L${layer}`, 2, layout.cells[i * layout.columns]!.y + h / 2);
    });
  }

  private drawCell(context: CanvasRenderingContext2D, cell: GridCell, layout: GridLayout): void {
    const { palette } = this.viewer;
    const [w, h] = layout.size;
    const picture = this.pictures.get(`${cell.layer}|${cell.head}`);
    if (picture) {
      context.imageSmoothingEnabled = picture.width > w * 2;
      context.drawImage(picture, cell.x, cell.y, w, h);
    } else fillMasked(context, cell.x, cell.y, w, h, palette);
    context.strokeStyle = palette.faint;
    context.lineWidth = 1;
    context.strokeRect(cell.x - 0.5, cell.y - 0.5, w + 1, h + 1);
    if (layout.flowing && w >= 30) {
      context.font = `11px ${FONT}`;
      context.fillStyle = palette.quiet;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      context.fillText(this.viewer.headName(cell.layer, cell.head), cell.x, cell.y - 4);
    }
  }

  private drawNumber(context: CanvasRenderingContext2D, cell: GridCell, layout: GridLayout): void {
    const scalar = this.scalar();
    const value = scalar ? this.viewer.value(scalar, cell.layer, cell.head).value : null;
    if (!scalar || value === null) return;
    if (scalar.classes) return this.drawClass(context, scalar, value, cell, layout);
    const { palette } = this.viewer;
    const [w, h] = layout.size;
    if (w >= 34) return drawBadge(context, formatNumber(value, 2), [cell.x + w, cell.y], w, palette.background, palette.ink, 0.86);
    const [low, high] = rangeOf(scalar);
    context.fillStyle = palette.negative;
    context.fillRect(cell.x, cell.y + h - 3, w * (high > low ? (value - low) / (high - low) : 1), 3);
  }

  /** The letter of a class, and its name where there is room. */
  private drawClass(context: CanvasRenderingContext2D, scalar: Scalar, value: number, cell: GridCell, layout: GridLayout): void {
    const [w] = layout.size;
    const letter = classLetters(scalar.classes!)[value] ?? "?";
    const whole = `${letter} ${readable(scalar.classes![value] ?? "")}`;
    const { color, ink } = classColors(this.viewer, value);
    context.font = `600 11px ${FONT}`;
    const text = context.measureText(whole).width <= w - 8 ? whole : letter;
    drawBadge(context, text, [cell.x + w, cell.y], w, color, ink);
  }

  private drawLegend(context: CanvasRenderingContext2D, layout: GridLayout): void {
    const lens = this.viewer.lens();
    const [x, y] = [layout.left, layout.height + 8];
    drawColorBar(context, [x, y, 120, 9], this.viewer.colors(lens.signed), lens.limit, lens.signed, this.viewer.palette, this.beyond);
    context.textAlign = "left";
    context.textBaseline = "middle";
    const room = parseFloat(this.canvas.style.width) - x - 132;
    context.fillText(fitText(context, `${lens.quantity}; one scale for all heads`, room), x + 132, y + 5);
  }

  private mark(): void {
    const { layout, viewer } = this;
    if (!layout) return;
    const { width, height } = this.canvas.style;
    const context = fitCanvas(this.overlay, parseFloat(width), parseFloat(height));
    const [w, h] = layout.size;
    const { layer, head } = viewer.state;
    const chosen = layout.cells.find((cell) => cell.layer === layer && (viewer.lens().merged || cell.head === head));
    for (const [cell, color, line] of [[chosen, viewer.palette.negative, 2.5], [this.hovered, viewer.palette.ink, 2]] as const) {
      if (!cell) continue;
      context.strokeStyle = color;
      context.lineWidth = line;
      context.strokeRect(cell.x - 1, cell.y - 1, w + 2, h + 2);
    }
  }

  private hit(event: MouseEvent): GridCell | null {
    const frame = this.canvas.getBoundingClientRect();
    return this.layout ? gridCellAt(this.layout, event.clientX - frame.left, event.clientY - frame.top) : null;
  }

  private hover(event: PointerEvent): void {
    const cell = this.hit(event);
    this.canvas.style.cursor = cell ? "pointer" : "";
    if (cell) this.tip.show(event.clientX, event.clientY, this.lines(cell.layer, cell.head));
    else this.tip.hide();
    if (cell === this.hovered) return;
    this.hovered = cell;
    this.mark();
  }

  private leave(): void {
    this.hovered = null;
    this.tip.hide();
    this.mark();
  }

  /** A head's name and all its numbers. */
  private lines(layer: number, head: number): string[] {
    const { viewer } = this;
    const name = viewer.headName(layer, head);
    const { merged, scales } = viewer.lens();
    const largest = scales[viewer.layerIndex(layer)]?.[merged ? 0 : viewer.headIndex(head)] ?? null;
    const scalars = this.scalars();
    const numbers = scalars.slice(0, LINES).map((scalar) => {
      const { value, low, high } = viewer.value(scalar, layer, head);
      const interval = low !== null && high !== null ? ` (${formatNumber(low)} to ${formatNumber(high)})` : "";
      return `${shortLabel(scalar)}: ${formatScalar(scalar, value)}${interval}`;
    });
    const more = scalars.length > LINES ? [`${scalars.length - LINES} more in the table (T)`] : [];
    return [name, largest === null ? "no map" : `largest weight: ${formatNumber(largest)}`, ...numbers, ...more];
  }

  keydown(event: KeyboardEvent): boolean {
    const { viewer, layout } = this;
    if (event.key === "Enter" || event.key === " ") {
      viewer.set({ view: "head" });
      return true;
    }
    const scalar = this.scalar();
    if (event.key === "Escape" && scalar && filterOf(viewer, scalar).kind !== "all") {
      this.setFilter({ kind: "all" });
      return true;
    }
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const by = steps[event.key];
    if (!layout || !by) return false;
    const { merged } = viewer.lens();
    const at = layout.cells.findIndex((cell) => cell.layer === viewer.state.layer && (merged || cell.head === viewer.state.head));
    const next = layout.cells[nextCell(layout, at, by)];
    if (!next) return true;
    viewer.set(merged ? { layer: next.layer } : { layer: next.layer, head: next.head });
    this.reveal(next);
    return true;
  }

  /** Scroll a cell into sight. */
  private reveal(cell: GridCell): void {
    const [width, height] = this.layout!.size;
    Object.assign(this.spot.style, { left: `${cell.x}px`, top: `${cell.y}px`, width: `${width}px`, height: `${height}px` });
    this.spot.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  async table(): Promise<Table> {
    const { viewer } = this;
    const sheet = viewer.sheet();
    const lens = viewer.lens();
    const scalars = this.scalars();
    const order = this.order() ?? sheet.layers.flatMap((layer) => sheet.heads.map((head): [number, number] => [layer, head]));
    const rows = order.map(([layer, head]) => [
      layer,
      lens.merged ? null : head,
      lens.scales[viewer.layerIndex(layer)]?.[lens.merged ? 0 : viewer.headIndex(head)] ?? null,
      ...scalars.map((scalar) => {
        const { value } = viewer.value(scalar, layer, head);
        return scalar.classes && value !== null ? (scalar.classes[value] ?? null) : value;
      }),
    ]);
    return { caption: `Heads of ${sheet.model}, ${lens.name}.`, columns: ["layer", "head", "largest weight", ...scalars.map((scalar) => longLabel(scalar))], rows };
  }

  async svg(): Promise<string> {
    const { layout, viewer } = this;
    if (!layout) return "";
    const { palette } = viewer;
    const [w, h] = layout.size;
    const svg = new Svg(layout.width, layout.height + LEGEND, palette.background, this.describe());
    const sheet = viewer.sheet();
    const quiet = { "font-size": 11, fill: palette.quiet };
    if (!layout.flowing) {
      sheet.heads.forEach((head, i) => svg.text(layout.cells[i]!.x + w / 2, 13, `H${head}`, { ...quiet, "text-anchor": "middle" }));
      sheet.layers.forEach((layer, i) => svg.text(2, layout.cells[i * layout.columns]!.y + h / 2 + 4, `L${layer}`, quiet));
    }
    const [scalar, shows] = [this.scalar(), this.shows()];
    for (const cell of layout.cells) {
      const picture = this.pictures.get(`${cell.layer}|${cell.head}`);
      if (picture && shows(cell)) svg.image(cell.x, cell.y, w, h, picture);
      svg.rect(cell.x, cell.y, w, h, { fill: "none", stroke: palette.faint });
      if (layout.flowing) svg.text(cell.x, cell.y - 4, viewer.headName(cell.layer, cell.head), quiet);
      if (scalar && w >= 34 && shows(cell)) writeNumber(svg, viewer, scalar, cell, layout);
    }
    const lens = viewer.lens();
    const ends = barMarks(lens.limit, lens.signed, this.beyond);
    svg.text(layout.left, layout.height + 22, `${lens.quantity}: ${ends[0]![1]} to ${ends.at(-1)![1]}`, quiet);
    return svg.toString();
  }

  python(): string {
    const [sheet, scalar, { state }] = [this.viewer.sheet(), this.scalar(), this.viewer];
    const { what, lens } = mapsOf(sheet, state.lens);
    const grid = `${drawCall(what, "head_grid", { lens })}${scalar && state.sort === "scalar" ? "  # by layer" : ""}`;
    return scalar ? `${grid}\n${headsCall(sheet, scalar)}${scalar.classes ? "" : "  # the numbers on the pictures"}` : grid;
  }

  describe(): string {
    const { viewer } = this;
    const [sheet, lens, { state }] = [viewer.sheet(), viewer.lens(), viewer];
    const all = lens.merged ? count(sheet.layers.length, "layer") : count(sheet.layers.length * sheet.heads.length, "head");
    const scalar = this.scalar();
    const filtered = scalar && filterOf(viewer, scalar).kind !== "all" ? ` Shown: ${describeFilter(viewer, scalar)}` : "";
    const over = scalar ? ` ${scalar.classes ? "Letters" : "Numbers"}: ${longLabel(scalar, scalar.lens !== lens.name)}.${filtered}` : "";
    const other = scalar?.lens ? sheet.lenses.find((each) => each.name === scalar.lens) : undefined;
    const outlined = `Outlined: ${viewer.headName(state.layer, state.head)}; click or press Enter to open it.`;
    return [`All ${all}: ${lens.quantity}.${over} ${outlined}`, lens.note || other?.note].filter(Boolean).join(" ");
  }

  destroy(): void {
    this.ask = -1;
    for (const part of [this.legend, this.box, this.tip.element]) part.remove();
  }
}

function rangeOf(scalar: Scalar): [number, number] {
  const values = scalar.values.flat().filter((value) => value !== null);
  return [Math.min(...values, 0), Math.max(...values)];
}

/** Text on a small box whose upper right corner is at a place, no wider than `width`: away from the diagonal, and on cells that a causal model masks. */
function drawBadge(context: CanvasRenderingContext2D, text: string, [right, top]: [number, number], width: number, back: string, ink: string, alpha = 1): void {
  const size = Math.min(11, width - 2);
  context.font = `600 ${size}px ${FONT}`;
  const [wide, high] = [Math.min(width, context.measureText(text).width + Math.min(8, size - 3)), size + 5];
  context.globalAlpha = alpha;
  context.fillStyle = back;
  context.fillRect(right - wide, top, wide, high);
  context.globalAlpha = 1;
  context.fillStyle = ink;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, right - wide / 2, top + high / 2 + 0.5, wide);
}

function writeNumber(svg: Svg, viewer: Viewer, scalar: Scalar, cell: GridCell, layout: GridLayout): void {
  const { value } = viewer.value(scalar, cell.layer, cell.head);
  if (value === null) return;
  const [right, top] = [cell.x + layout.size[0], cell.y];
  const text = scalar.classes ? classLetters(scalar.classes)[value]! : formatNumber(value, 2);
  const { color, ink } = scalar.classes ? classColors(viewer, value) : { color: viewer.palette.background, ink: viewer.palette.ink };
  const wide = 6.6 * text.length + 8;
  svg.rect(right - wide, top, wide, 16, { fill: color, "fill-opacity": scalar.classes ? 1 : 0.86 });
  svg.text(right - wide / 2, top + 12, text, { "font-size": 11, "font-weight": 600, fill: ink, "text-anchor": "middle" });
}

export const gridView: View = {
  name: "grid",
  title: "Heads",
  key: "1",
  controls: ["lens", "scalar", "sort"],
  available: (viewer) => (viewer.header.sheets[viewer.state.sheet]?.lenses.length ?? 0) > 0,
  open: (viewer, element) => new Grid(viewer, element),
};
