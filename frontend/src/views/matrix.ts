/** One number of every head: layers down, heads across, with means of layers, or how many heads each class has. */
import { fitCanvas, fitText, FONT, makeCanvas } from "../canvas";
import { type Rgb, textOn } from "../colors";
import { make, setOptions } from "../dom";
import { classColors, describeFilter, fillLegend, filterOf, makeLegend, passes, readable, setFilter } from "../filter";
import { capitalize, count, formatNumber, formatScalar } from "../format";
import { classCounts, classLetters, findEnds, type Filter, formatFilter, fullLabel, type HeadCell, layerMeans, listCells, longLabel, numberFormat, parseFilter, rowOrder, shortLabel, sortCells, valueRange } from "../heads";
import { headsCall } from "../python";
import { CanvasSurface, paintColorBar, type Surface, toSvg } from "../surface";
import { Tip } from "../tip";
import type { OpenView, Scalar, State, Table, View, Viewer } from "../types";

const [LEFT, TOP, GAP, SIDE, LEGEND] = [38, 24, 26, 210, 36];
const [LARGEST, SMALLEST] = [{ width: 64, height: 38 }, 7];

/** Where cells are, in CSS pixels. `order` gives the head indices of each row from left to right. */
export interface MatrixLayout {
  width: number;
  height: number;
  cell: [number, number];
  order: number[][];
  side: { x: number; width: number };
  /** Top of the line with the means of heads, and of the legend. */
  legend: number;
}

/** Fit a table of so many rows and columns into a width and, as far as its rows stay in their range, a height. */
export function layoutMatrix(order: number[][], width: number, height: number, { least = 18, most = LARGEST.height, below = LEGEND } = {}): MatrixLayout {
  const columns = Math.max(1, ...order.map((row) => row.length));
  const side = width < 560 ? 110 : SIDE;
  const across = Math.min(LARGEST.width, (width - LEFT - GAP - side) / columns);
  const down = Math.min(most, across, Math.max(least, (height - TOP - below) / order.length));
  const cell: [number, number] = [Math.max(SMALLEST, across), Math.max(SMALLEST, down)];
  const x = LEFT + columns * cell[0] + GAP;
  const legend = TOP + order.length * cell[1] + 14;
  return { width: x + side, height: legend + below, cell, order, side: { x, width: side }, legend };
}

/** The indices of the layer and head at a point; in the bars beside them the layer only; null elsewhere. */
export function matrixCellAt(layout: MatrixLayout, x: number, y: number): { layer: number; head: number | null } | null {
  const layer = Math.floor((y - TOP) / layout.cell[1]);
  const row = layout.order[layer];
  if (!row || y < TOP) return null;
  if (x >= layout.side.x) return x <= layout.side.x + layout.side.width ? { layer, head: null } : null;
  const head = row[Math.floor((x - LEFT) / layout.cell[0])];
  return head === undefined || x < LEFT ? null : { layer, head };
}

/** The class in the stacked bar of a layer at a share of its length; -1 beyond its end. */
export function classAt(counts: readonly number[], share: number): number {
  const total = counts.reduce((sum, each) => sum + each, 0);
  let before = 0;
  return share < 0 ? -1 : counts.findIndex((each) => (before += each) > share * total);
}

/** Put a frame around the cell of a head. */
export function frameCell(surface: Surface, layout: MatrixLayout, layer: number, head: number, color: string, line: number): void {
  const column = layout.order[layer]?.indexOf(head) ?? -1;
  const [w, h] = layout.cell;
  if (column >= 0) surface.frame(LEFT + column * w, TOP + layer * h, w - 1, h - 1, color, line);
}

class Matrix implements OpenView {
  private readonly canvas: HTMLCanvasElement;
  private readonly overlay = make("canvas", "hs-over", { "aria-hidden": "true" });
  private readonly box: HTMLElement;
  private readonly number = make("select", "hs-select");
  private readonly order = make("select", "hs-select");
  private readonly shown = make("select", "hs-select");
  private readonly controls: HTMLElement;
  private readonly legend = make("div", "hs-classes", { role: "group", "aria-label": "Classes: click to show one" });
  private readonly tip: Tip;
  private layout: MatrixLayout | null = null;
  private hovered: { layer: number; head: number } | null = null;
  private spoken = "";

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    this.canvas = makeCanvas(viewer, "One number of every head");
    this.box = make("div", "hs-stack", {}, this.canvas, this.overlay);
    this.controls = make("div", "hs-tools", { role: "group", "aria-label": "Number, order and filter" },
      field("Number", this.number), field("Heads", this.order), field("Show", this.shown));
    element.append(this.controls, this.legend, this.box);
    this.tip = new Tip(element);
    this.listen();
  }

  private listen(): void {
    const { viewer } = this;
    this.number.addEventListener("change", () => viewer.set({ scalar: this.number.value }));
    this.order.addEventListener("change", () => viewer.set({ sort: this.order.value as State["sort"], scalar: this.scalar()?.name ?? "" }));
    this.shown.addEventListener("change", () => this.setFilter(parseFilter(this.shown.value, this.scalar()!, this.viewer.sheet().layers)));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.click(event));
  }

  /** The chosen number; the first where none is chosen. */
  private scalar(): Scalar | null {
    const { viewer } = this;
    return viewer.scalar() ?? viewer.scalar(viewer.scalarNames()[0] ?? "");
  }

  private get filter(): Filter {
    return filterOf(this.viewer, this.scalar()!);
  }

  private setFilter(filter: Filter): void {
    const scalar = this.scalar()!;
    setFilter(this.viewer, scalar, filter);
    this.viewer.announce(describeFilter(this.viewer, scalar));
  }

  update(): void {
    const scalar = this.scalar();
    if (!scalar) return;
    this.fillControls(scalar);
    const width = Math.max(320, this.element.clientWidth);
    const sorted = this.viewer.state.sort === "scalar" && !scalar.classes;
    const space = (this.viewer.options.height ?? Math.max(420, window.innerHeight)) - (this.viewer.options.height ? 110 : 270);
    this.layout = layoutMatrix(scalar.values.map((row) => rowOrder(row, sorted)), width, space, scalar.classes ? { below: 0 } : {});
    const context = fitCanvas(this.canvas, this.layout.width, this.layout.height);
    paintMatrix(new CanvasSurface(context, this.viewer.palette), this.picture(scalar));
    this.mark();
    this.viewer.drawn();
    this.speak();
  }

  private picture(scalar: Scalar): MatrixPicture {
    const { viewer } = this;
    const sheet = viewer.sheet();
    const heads = scalar.values[0]?.length === sheet.heads.length ? sheet.heads : [];
    return { viewer, scalar, layout: this.layout!, layers: sheet.layers, heads, passes: passes(viewer, scalar), sorted: viewer.state.sort === "scalar" && !scalar.classes };
  }

  private fillControls(scalar: Scalar): void {
    const { viewer } = this;
    const names = viewer.scalarNames().map((name) => [name, longLabel(viewer.scalar(name)!)] as const);
    setOptions(this.number, names, scalar.name);
    setOptions(this.order, [["layer", "by number of the head"], ["scalar", "largest first, in each layer"]], viewer.state.sort);
    this.order.parentElement!.hidden = scalar.classes !== null || (scalar.values[0]?.length ?? 0) < 2;
    setOptions(this.shown, filterOptions(scalar), chosenOption(this.filter));
    fillLegend(this.legend, scalar.classes ? makeLegend(viewer, scalar, (filter) => this.setFilter(filter)) : []);
  }

  private mark(): void {
    const { layout, viewer } = this;
    if (!layout) return;
    const context = fitCanvas(this.overlay, layout.width, layout.height);
    const surface = new CanvasSurface(context, viewer.palette);
    const chosen = { layer: viewer.layerIndex(), head: layout.order[0]?.length === 1 ? 0 : viewer.headIndex() };
    for (const [cell, color, line] of [[chosen, viewer.palette.negative, 2.5], [this.hovered, viewer.palette.ink, 2]] as const) {
      if (cell) frameCell(surface, layout, cell.layer, cell.head, color, line);
    }
  }

  private hit(event: MouseEvent): { layer: number; head: number | null; share: number } | null {
    const frame = this.canvas.getBoundingClientRect();
    const { layout } = this;
    const found = layout && matrixCellAt(layout, event.clientX - frame.left, event.clientY - frame.top);
    return found ? { ...found, share: (event.clientX - frame.left - layout.side.x) / layout.side.width } : null;
  }

  private hover(event: PointerEvent): void {
    const scalar = this.scalar();
    const found = this.hit(event);
    this.canvas.style.cursor = found && (found.head !== null ? this.opens() : scalar?.classes) ? "pointer" : "";
    this.hovered = found && found.head !== null ? { layer: found.layer, head: found.head } : null;
    const lines = !found || !scalar ? null : found.head === null ? this.layerLines(scalar, found.layer, found.share) : this.lines(scalar, found.layer, found.head);
    if (lines) this.tip.show(event.clientX, event.clientY, lines);
    else this.tip.hide();
    this.mark();
  }

  private leave(): void {
    this.hovered = null;
    this.tip.hide();
    this.mark();
  }

  private click(event: MouseEvent): void {
    const { viewer } = this;
    const [found, scalar] = [this.hit(event), this.scalar()];
    if (!found || !scalar) return;
    const sheet = viewer.sheet();
    if (found.head !== null) return this.choose(sheet.layers[found.layer]!, found.head, true);
    if (!scalar.classes) return;
    const index = classAt(classCounts(scalar.values, scalar.classes.length)[found.layer]!, found.share);
    const now = this.filter;
    const same = now.kind === "class" && now.index === index && now.layer === found.layer;
    if (index >= 0) this.setFilter(same ? { kind: "all" } : { kind: "class", index, layer: found.layer });
  }

  /** Whether a head can be opened: sheets of numbers only have no maps. */
  private opens(): boolean {
    return this.viewer.sheet().lenses.length > 0;
  }

  private choose(layer: number, headIndex: number, open: boolean): void {
    const { viewer } = this;
    const sheet = viewer.sheet();
    const scalar = this.scalar()!;
    const single = scalar.values[0]?.length !== sheet.heads.length;
    const lens = scalar.lens && sheet.lenses.some((each) => each.name === scalar.lens) ? { lens: scalar.lens } : {};
    const view = open && this.opens() ? { view: "head" as const, scalar: scalar.name, ...lens } : {};
    viewer.set({ layer, ...(single ? {} : { head: sheet.heads[headIndex]! }), ...view });
  }

  private name(layer: number, head: number): string {
    const sheet = this.viewer.sheet();
    const single = this.scalar()!.values[0]?.length !== sheet.heads.length;
    return single ? `layer ${sheet.layers[layer]}` : `L${sheet.layers[layer]}H${sheet.heads[head]}`;
  }

  private lines(scalar: Scalar, layer: number, head: number): string[] {
    const cell = listCells(scalar).find((each) => each.layer === layer && each.head === head)!;
    return [this.name(layer, head), `${shortLabel(scalar)}: ${describeValue(scalar, cell)}`, ...(scalar.n ? [scalar.n] : [])];
  }

  private layerLines(scalar: Scalar, layer: number, share: number): string[] {
    const label = `Layer ${this.viewer.sheet().layers[layer]}`;
    if (!scalar.classes) {
      const known = scalar.values[layer]!.filter((value) => value !== null).length;
      return [label, `mean of ${count(known, "head")}: ${formatNumber(layerMeans(scalar.values)[layer]!)}`];
    }
    const counts = classCounts(scalar.values, scalar.classes.length)[layer]!;
    const at = classAt(counts, share);
    const order = counts.map((_, index) => index).filter((index) => counts[index]! > 0);
    return [label, ...order.map((index) => `${index === at ? "▸ " : ""}${readable(scalar.classes![index]!)}: ${counts[index]}`)];
  }

  keydown(event: KeyboardEvent): boolean {
    const { layout, viewer } = this;
    if (!layout) return false;
    if (event.key === "Enter") {
      if (this.opens()) this.choose(viewer.state.layer, viewer.headIndex(), true);
      return true;
    }
    if (event.key === "Escape" && this.filter.kind !== "all") {
      this.setFilter({ kind: "all" });
      return true;
    }
    const steps: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const step = steps[event.key];
    if (!step) return false;
    const layer = Math.max(0, Math.min(layout.order.length - 1, viewer.layerIndex() + step[0]));
    const row = layout.order[layer]!;
    const column = layout.order[viewer.layerIndex()]!.indexOf(viewer.headIndex()) + step[1];
    this.choose(viewer.sheet().layers[layer]!, row[Math.max(0, Math.min(row.length - 1, column))]!, false);
    return true;
  }

  private speak(): void {
    const scalar = this.scalar()!;
    const { viewer } = this;
    const head = scalar.values[0]?.length === 1 ? 0 : viewer.headIndex();
    const text = this.lines(scalar, viewer.layerIndex(), head).join(", ");
    if (this.spoken && this.spoken !== text) viewer.announce(text);
    this.spoken = text;
  }

  async table(): Promise<Table> {
    const scalar = this.scalar()!;
    const sheet = this.viewer.sheet();
    const single = scalar.values[0]?.length !== sheet.heads.length;
    const cells = listCells(scalar).filter(passes(this.viewer, scalar));
    const sorted = this.viewer.state.sort === "scalar" && !scalar.classes ? sortCells(cells) : cells;
    const limits = scalar.low && scalar.high ? ["low", "high"] : [];
    const rows = sorted.map((cell) => [
      sheet.layers[cell.layer]!,
      ...(single ? [] : [sheet.heads[cell.head]!]),
      scalar.classes && cell.value !== null ? readable(scalar.classes[cell.value] ?? "–") : cell.value,
      ...(limits.length ? [cell.low, cell.high] : []),
      ...(scalar.n ? [scalar.n.replace(/^n = /, "")] : []),
    ]);
    const columns = ["layer", ...(single ? [] : ["head"]), fullLabel(scalar), ...limits, ...(scalar.n ? ["n"] : [])];
    return { caption: `${fullLabel(scalar)}. ${describeFilter(this.viewer, scalar)}`, columns, rows };
  }

  async svg(): Promise<string> {
    const { layout, viewer } = this;
    const scalar = this.scalar();
    if (!layout || !scalar) return "";
    return toSvg(layout.width, layout.height + (scalar.classes ? LEGEND : 0), viewer.palette, this.describe(), (surface) => paintMatrix(surface, this.picture(scalar), true));
  }

  python(): string {
    return headsCall(this.viewer.sheet(), this.scalar()!);
  }

  describe(): string {
    const scalar = this.scalar();
    if (!scalar) return "";
    const all = listCells(scalar);
    const known = sortCells(all).filter((cell) => cell.value !== null);
    const missing = all.length - known.length;
    const rest = `${missing ? ` Hatched: no value (${missing}).` : ""}${this.filter.kind === "all" ? "" : ` Shown: ${describeFilter(this.viewer, scalar)}`}`;
    const label = capitalize(longLabel(scalar));
    if (!known.length) return `${label}.${rest}`;
    if (scalar.classes) {
      const totals = classCounts([scalar.values.flat()], scalar.classes.length)[0]!;
      const order = totals.map((_, index) => index).filter((index) => totals[index]).sort((a, b) => totals[b]! - totals[a]!);
      return `${label}: ${order.map((index) => `${readable(scalar.classes![index]!)} ${totals[index]}`).join(", ")} of ${count(known.length, "head")}.${rest}`;
    }
    const { largest, smallest } = findEnds(all);
    if (known.length > 1 && largest.length === known.length) return `${label}: ${formatNumber(largest[0]!.value)} at all ${known.length}.${rest}`;
    return `${label}: largest ${this.readEnd(scalar, largest)}, smallest ${this.readEnd(scalar, smallest)}.${rest}`;
  }

  /** "0.52 (0.49 to 0.55) at L3H4", or at how many. */
  private readEnd(scalar: Scalar, [first, ...others]: HeadCell[]): string {
    if (others.length) return `${formatNumber(first!.value)} at ${others.length + 1} of them`;
    return `${describeValue(scalar, first!)} at ${this.name(first!.layer, first!.head)}`;
  }

  destroy(): void {
    for (const part of [this.controls, this.legend, this.box, this.tip.element]) part.remove();
  }
}

function field(label: string, select: HTMLSelectElement): HTMLElement {
  return make("label", "hs-field", {}, make("span", "hs-label", {}, label), select);
}

/** "0.52 (0.49 to 0.55)", or the name of a class. */
function describeValue(scalar: Scalar, cell: HeadCell): string {
  const value = scalar.classes ? readable(formatScalar(scalar, cell.value)) : formatNumber(cell.value);
  return cell.low !== null && cell.high !== null ? `${value} (${formatNumber(cell.low)} to ${formatNumber(cell.high)})` : value;
}


function filterOptions(scalar: Scalar): [string, string][] {
  const all: [string, string] = ["", "all heads"];
  if (scalar.classes) return [all, ...scalar.classes.map((name, index): [string, string] => [`class-${index}`, readable(name)])];
  const intervals: [string, string][] = scalar.low && scalar.high ? [["nonzero", "interval leaves out 0"]] : [];
  return [all, ["highest", "highest tenth"], ["lowest", "lowest tenth"], ...intervals];
}

/** The option of a filter: of a class in one layer, that of the class. */
function chosenOption(filter: Filter): string {
  return formatFilter(filter.kind === "class" ? { ...filter, layer: null } : filter, []);
}

/** What is painted. */
export interface MatrixPicture {
  viewer: Viewer;
  scalar: Scalar;
  layout: MatrixLayout;
  layers: readonly number[];
  heads: readonly number[];
  passes: (cell: HeadCell) => boolean;
  sorted: boolean;
}

/** Paint everything; `names` adds the names of classes, which on the page are buttons. */
export function paintMatrix(surface: Surface, picture: MatrixPicture, names = false): void {
  const { scalar, layout, viewer } = picture;
  paintLabels(surface, picture);
  const paint = scalar.classes ? paintClassCell(picture) : paintNumberCell(picture);
  for (const cell of listCells(scalar)) {
    const x = LEFT + layout.order[cell.layer]!.indexOf(cell.head) * layout.cell[0];
    const y = TOP + cell.layer * layout.cell[1];
    const [w, h] = [layout.cell[0] - 1, layout.cell[1] - 1];
    if (cell.value === null) surface.masked(x, y, w, h);
    else if (picture.passes(cell)) paint(surface, cell, x, y, w, h);
    else surface.frame(x + 0.5, y + 0.5, w - 1, h - 1, viewer.palette.faint);
  }
  if (scalar.classes) paintStacks(surface, picture);
  else paintMeans(surface, picture);
  paintLegend(surface, picture, names);
}

function paintLabels(surface: Surface, { layout, layers, heads, viewer, sorted, scalar }: MatrixPicture): void {
  const quiet = { color: viewer.palette.quiet };
  const [w, h] = layout.cell;
  const [across, down] = [Math.ceil(24 / w), Math.ceil(12 / h)];
  layers.forEach((layer, i) => {
    if (i % down === 0) surface.text(LEFT - 6, TOP + (i + 0.5) * h, `L${layer}`, { ...quiet, align: "right" });
  });
  if (sorted) surface.text(LEFT, TOP - 11, "heads of each layer, largest first", quiet);
  else heads.forEach((head, i) => {
    if (i % across === 0) surface.text(LEFT + (i + 0.5) * w, TOP - 11, `H${head}`, { ...quiet, align: "center" });
  });
  surface.text(layout.side.x, TOP - 11, scalar.classes ? "heads by class" : "mean of each layer", quiet);
}

/** Colors of numbers: from the smallest to the largest, or around 0. */
function colorOf(viewer: Viewer, scalar: Scalar): (value: number) => Rgb {
  const range = valueRange(scalar.values);
  const table = viewer.colors(range.signed);
  return (value) => table.rgb((value - range.low) / (range.high - range.low));
}

function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

function paintNumberCell({ viewer, scalar, layout, heads, sorted }: MatrixPicture): (surface: Surface, cell: HeadCell, x: number, y: number, w: number, h: number) => void {
  const [color, format] = [colorOf(viewer, scalar), numberFormat(scalar.values)];
  const longest = Math.max(...scalar.values.flat().map((value) => format(value).length));
  const size = Math.min(12, (layout.cell[0] - 4) / (0.58 * longest), layout.cell[1] - 5);
  const named = sorted && heads.length > 0 && layout.cell[0] >= 40 && layout.cell[1] >= 28;
  return (surface, cell, x, y, w, h) => {
    const rgb = color(cell.value!);
    surface.rect(x, y, w, h, css(rgb));
    const ink = textOn(rgb);
    if (size >= 8) surface.text(x + w / 2, y + h / 2 + (named ? 6 : 0), format(cell.value), { size, color: ink, align: "center" });
    if (named) surface.text(x + w / 2, y + 8, `H${heads[cell.head]}`, { size: 9, color: ink, align: "center" });
  };
}

function paintClassCell({ viewer, scalar, layout }: MatrixPicture): (surface: Surface, cell: HeadCell, x: number, y: number, w: number, h: number) => void {
  const letters = classLetters(scalar.classes!);
  const size = Math.min(13, layout.cell[1] - 4, layout.cell[0] - 2);
  return (surface, cell, x, y, w, h) => {
    const { color, ink } = classColors(viewer, cell.value!);
    surface.rect(x, y, w, h, color);
    if (size >= 6) surface.text(x + w / 2, y + h / 2, letters[cell.value!] ?? "?", { size, bold: true, color: ink, align: "center" });
  };
}

/** Bars from 0, or from the smallest end of the scale, with the mean of each layer beside them. */
function paintMeans(surface: Surface, { viewer, scalar, layout }: MatrixPicture): void {
  const { palette } = viewer;
  const means = layerMeans(scalar.values);
  const format = numberFormat(scalar.values.flat().every((value) => value === null || Number.isInteger(value)) ? [means] : [...scalar.values, means]);
  const known = means.filter((mean) => mean !== null);
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  const span = high - low || 1;
  const room = layout.side.width - 54;
  const zero = layout.side.x + (-low / span) * room;
  means.forEach((mean, layer) => {
    const y = TOP + layer * layout.cell[1];
    const thick = Math.min(14, layout.cell[1] * 0.55);
    if (mean === null) return surface.text(layout.side.x, y + layout.cell[1] / 2, "no value", { color: palette.quiet });
    const length = (Math.abs(mean) / span) * room;
    surface.rect(mean < 0 ? zero - length : zero, y + (layout.cell[1] - thick) / 2, Math.max(0.5, length), thick, mean < 0 ? palette.negative : palette.positive);
    if (layout.cell[1] >= 12) surface.text(layout.side.x + room + 8, y + layout.cell[1] / 2, format(mean), { color: palette.ink });
  });
  surface.line(zero, TOP, zero, TOP + means.length * layout.cell[1], { color: palette.quiet });
}

/** One bar for each layer, as long as all its heads, divided by class. */
function paintStacks(surface: Surface, { viewer, scalar, layout, passes }: MatrixPicture): void {
  const { palette } = viewer;
  const letters = classLetters(scalar.classes!);
  classCounts(scalar.values, scalar.classes!.length).forEach((counts, layer) => {
    const total = counts.reduce((sum, each) => sum + each, 0);
    const [y, h] = [TOP + layer * layout.cell[1], layout.cell[1]];
    const thick = Math.min(22, h - 3);
    let x = layout.side.x;
    counts.forEach((each, index) => {
      const width = total ? (each / total) * layout.side.width : 0;
      if (!width) return;
      const { color, ink } = classColors(viewer, index);
      const shown = passes({ layer, head: 0, value: index, low: null, high: null });
      const box = [x, y + (h - thick) / 2, Math.max(0.5, width - 1), thick] as const;
      if (shown) surface.rect(...box, color);
      else surface.frame(box[0] + 0.5, box[1] + 0.5, Math.max(0, box[2] - 1), thick - 1, palette.faint);
      const text = `${letters[index]} ${each}`;
      const fits = width >= 6.5 * text.length + 4 ? text : width >= 11 ? letters[index]! : "";
      if (fits && thick >= 10) surface.text(x + width / 2, y + h / 2, fits, { color: shown ? ink : palette.quiet, align: "center" });
      x += width;
    });
  });
}

function paintLegend(surface: Surface, { viewer, scalar, layout }: MatrixPicture, names: boolean): void {
  const { palette } = viewer;
  const y = layout.legend;
  if (scalar.classes) {
    if (!names) return;
    const letters = classLetters(scalar.classes);
    let x = LEFT;
    scalar.classes.forEach((name, index) => {
      const { color, ink } = classColors(viewer, index);
      surface.rect(x, y, 16, 16, color);
      surface.text(x + 8, y + 8, letters[index]!, { bold: true, color: ink, align: "center" });
      surface.text(x + 22, y + 8, readable(name), { color: palette.ink });
      x += 38 + 6.4 * readable(name).length;
    });
    return;
  }
  const range = valueRange(scalar.values);
  const marks: [number, string][] = [[0, formatNumber(range.low, 2)], [1, formatNumber(range.high, 2)]];
  if (range.signed) marks.splice(1, 0, [0.5, "0"]);
  paintColorBar(surface, [LEFT, y + 2, 140, 9], viewer.colors(range.signed), marks, palette);
  surface.text(LEFT + 152, y + 7, fitLabel(fullLabel(scalar), layout.width - LEFT - 156), { color: palette.quiet });
}

let measure: CanvasRenderingContext2D | null = null;

function fitLabel(text: string, width: number): string {
  measure ??= document.createElement("canvas").getContext("2d")!;
  measure.font = `11px ${FONT}`;
  return fitText(measure, text, width);
}

export const matrixView: View = {
  name: "matrix",
  title: "Numbers",
  key: "4",
  controls: ["lens"],
  available: (viewer) => (viewer.header.sheets[viewer.state.sheet]?.scalars.length ?? 0) > 0,
  open: (viewer, element) => new Matrix(viewer, element),
};
