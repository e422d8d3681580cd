/** The same head of two models or two sites side by side, and how alike all their heads are. */
import { fitCanvas, makeCanvas } from "../canvas";
import { make, makeButton, setOptions } from "../dom";
import { formatNumber } from "../format";
import { rowOrder } from "../heads";
import { derive } from "../heatmap";
import { cosine, difference, findComparison, leastAlike, sameTokens, sharedLenses, sheetName, whyNotCompared } from "../pairs";
import { type Panel, Panels, readDifference } from "../panels";
import { drawCall, mapsOf, noteHidden, withWords } from "../python";
import { readHidden } from "../reading";
import { nearest } from "../state";
import { CanvasSurface, toSvg } from "../surface";
import { Tip } from "../tip";
import type { MapData, OpenView, Scalar, Table, View, Viewer } from "../types";
import { sameMaps } from "./compare";
import { frameCell, layoutMatrix, matrixCellAt, type MatrixLayout, type MatrixPicture, paintMatrix } from "./matrix";

const [WIDEST, ROW, TALLEST] = [800, 22, 380];

/** One side: a sheet, and which of its heads and lenses is shown. */
interface Side {
  sheet: number;
  name: string;
  lens: string;
  layer: number;
  head: number;
}

class Models implements OpenView {
  private readonly second = make("select", "hs-select");
  private readonly least = makeButton("", () => this.openLeast(), { title: "The head whose two maps have the smallest cosine" });
  private readonly controls: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly overlay = make("canvas", "hs-over", { "aria-hidden": "true" });
  private readonly box: HTMLElement;
  private readonly tip: Tip;
  private readonly pictures: Panels;
  private layout: MatrixLayout | null = null;
  private panels: Panel[] = [];
  private alike = false;
  private ask = 0;

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    this.canvas = makeCanvas(viewer, "Cosine of every head");
    this.box = make("div", "hs-stack hs-cosines", {}, this.canvas, this.overlay);
    const field = make("label", "hs-field", {}, make("span", "hs-label", {}, "beside"), this.second);
    this.controls = make("div", "hs-tools", { role: "group", "aria-label": "What is beside it" }, field, this.least);
    element.append(this.controls, this.box);
    this.pictures = new Panels(viewer, element);
    this.tip = new Tip(element);
    this.listen();
  }

  private listen(): void {
    this.second.addEventListener("change", () => this.viewer.set({ second: Number(this.second.value) }));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.tip.hide());
    this.canvas.addEventListener("click", (event) => {
      const [found, sheet] = [this.hit(event), this.viewer.sheet()];
      if (found) this.viewer.set({ layer: sheet.layers[found.layer]!, head: sheet.heads[found.head]! });
    });
  }

  /** The two sides: the chosen sheet, and the other one; the second shows its head with the nearest label. */
  private sides(): [Side, Side] {
    const { viewer } = this;
    const { header, state } = viewer;
    const second = secondSheet(viewer);
    const [one, other] = [viewer.sheet(), viewer.sheet(second)];
    const shared = sharedLenses(one, other);
    const lens = shared.includes(state.lens) ? state.lens : (shared[0] ?? state.lens);
    const first = { sheet: state.sheet, name: sheetName(header, state.sheet), lens, layer: state.layer, head: state.head };
    const place = { layer: nearest(other.layers, state.layer), head: nearest(other.heads, state.head) };
    return [first, { sheet: second, name: sheetName(header, second), lens: viewer.lens(lens, second).name, ...place }];
  }

  /** The cosine of every head as a number by head; null where there is none. */
  private cosines(): Scalar | null {
    const [first, second] = this.sides();
    const found = findComparison(this.viewer.header, first.sheet, second.sheet, first.lens);
    const label = `cosine of the maps of ${first.name} and ${second.name}`;
    return found && { name: "cosine", label, lens: first.lens, values: found.values, low: null, high: null, n: null, classes: null };
  }

  update(): void {
    void this.load(++this.ask).catch((error) => this.viewer.fail(error));
  }

  private async load(ask: number): Promise<void> {
    const { viewer } = this;
    const sides = this.sides();
    const maps = await Promise.all(sides.map((side) => viewer.map(side.sheet, side.lens, side.layer, side.head)));
    if (ask !== this.ask) return;
    this.fillControls(sides);
    this.drawCosines();
    this.alike = sides[0].lens === sides[1].lens && sameTokens(viewer.sheet(sides[0].sheet), viewer.sheet(sides[1].sheet)) && sameShape(maps[0]!, maps[1]!);
    this.panels = this.makePanels(sides, maps as [MapData, MapData]);
    this.pictures.draw(this.panels, this.alike);
    viewer.drawn({ layer: sides[0].layer, head: sides[0].head, panels: this.panels.length });
    viewer.speak(this.describe());
  }

  private fillControls([first, second]: [Side, Side]): void {
    const { header } = this.viewer;
    const others = shownSheets(this.viewer).filter((index) => index !== first.sheet);
    setOptions(this.second, others.map((index) => [String(index), sheetName(header, index)] as const), String(second.sheet));
    const least = leastAlike(this.cosines()?.values ?? []);
    this.least.hidden = !least || least.ties === least.of;
    if (least) this.least.textContent = `Least alike: ${this.name(least.layer, least.head)}`;
  }

  /** What stands in the way of a comparison, and which head of the second is shown where labels differ. */
  private why([first, second]: [Side, Side]): string {
    const { viewer } = this;
    const why = whyNotCompared(viewer.header, first.sheet, second.sheet, first.lens) ?? "";
    const moved = second.layer !== first.layer || second.head !== first.head;
    const shown = moved ? ` ${second.name} has no L${first.layer}H${first.head}; L${second.layer}H${second.head} is shown.` : "";
    return `${viewer.lens(first.lens, first.sheet).merged ? "" : why}${shown}`.trim();
  }

  private name(layer: number, head: number): string {
    const sheet = this.viewer.sheet();
    return `L${sheet.layers[layer]}H${sheet.heads[head]}`;
  }

  private openLeast(): void {
    const least = leastAlike(this.cosines()?.values ?? []);
    const sheet = this.viewer.sheet();
    if (least) this.viewer.set({ layer: sheet.layers[least.layer]!, head: sheet.heads[least.head]! });
  }

  private drawCosines(): void {
    const scalar = this.cosines();
    this.box.hidden = !scalar;
    this.layout = null;
    if (!scalar) return;
    const { viewer } = this;
    const rows = scalar.values.length;
    const width = Math.min(WIDEST, Math.max(320, this.element.clientWidth));
    this.layout = layoutMatrix(scalar.values.map((row) => rowOrder(row, false)), width, Math.min(TALLEST, rows * ROW + 76), { least: 9, most: ROW });
    const context = fitCanvas(this.canvas, this.layout.width, this.layout.height);
    paintMatrix(new CanvasSurface(context, viewer.palette), this.picture(scalar));
    const over = new CanvasSurface(fitCanvas(this.overlay, this.layout.width, this.layout.height), viewer.palette);
    frameCell(over, this.layout, viewer.layerIndex(), viewer.headIndex(), viewer.palette.negative, 2.5);
  }

  private picture(scalar: Scalar): MatrixPicture {
    const { viewer } = this;
    const { layers, heads } = viewer.sheet();
    return { viewer, scalar, layout: this.layout!, layers, heads, passes: () => true, sorted: false };
  }

  private hit(event: MouseEvent): { layer: number; head: number } | null {
    const frame = this.canvas.getBoundingClientRect();
    const found = this.layout && matrixCellAt(this.layout, event.clientX - frame.left, event.clientY - frame.top);
    return found && found.head !== null ? { layer: found.layer, head: found.head } : null;
  }

  private hover(event: PointerEvent): void {
    const found = this.hit(event);
    this.canvas.style.cursor = found ? "pointer" : "";
    const value = found && this.cosines()?.values[found.layer]?.[found.head];
    if (found) this.tip.show(event.clientX, event.clientY, [this.name(found.layer, found.head), `cosine: ${formatNumber(value ?? null)}`]);
    else this.tip.hide();
  }

  private makePanels([first, second]: [Side, Side], maps: readonly [MapData, MapData]): Panel[] {
    const limits = maps.map((map) => derive(map.weights, map.rows, map.columns).limit);
    const limit = first.lens === second.lens ? Math.max(...limits.filter((_, i) => !maps[i]!.missing), 0) || 1 : null;
    const panels = [first, second].map((side, i): Panel => {
      const map = maps[i]!;
      const { quantity } = this.viewer.lens(side.lens, side.sheet);
      return { name: side.name, title: quantity, map, weights: map.weights, signed: map.signed, limit: limit ?? limits[i]!, instead: map.missing ?? "" };
    });
    return this.alike && panels.every((panel) => !panel.instead) ? [...panels, differencePanel(panels[0]!, panels[1]!)] : panels;
  }

  keydown(event: KeyboardEvent): boolean {
    return this.pictures.keydown(event);
  }

  async table(): Promise<Table> {
    const [first, second] = this.sides();
    return this.pictures.table(`${this.viewer.headName(first.layer, first.head, first.lens)} of ${first.name} and ${second.name}, ${first.lens}.`);
  }

  async svg(): Promise<string> {
    const shown = this.panels.some((panel) => !panel.instead);
    const [scalar, { layout, viewer }] = [this.cosines(), this];
    if (shown || !scalar || !layout) return this.pictures.svg(this.describe());
    return toSvg(layout.width, layout.height, viewer.palette, this.describe(), (surface) => paintMatrix(surface, this.picture(scalar)));
  }

  /** The lines of the second sheet under another name, and the figure of both. */
  python(): string {
    const [first, second] = this.sides();
    const { viewer } = this;
    const lines = viewer.sheet(second.sheet).python.replace(/^import headscope as hs\s*/, "").replace(/^maps = /m, "others = ").trimEnd();
    const [one, other] = [mapsOf(viewer.sheet(first.sheet), first.lens), mapsOf(viewer.sheet(second.sheet), second.lens, "others")];
    const head = viewer.lens(first.lens, first.sheet).merged ? undefined : first.head;
    const what = `[${withWords(one, viewer.state)}, ${withWords(other, viewer.state)}]`;
    return `${lines}\n${drawCall(what, "compare", { layer: first.layer, head })}${noteHidden(viewer.state, one)}`;
  }

  describe(): string {
    const { viewer } = this;
    const [first, second] = this.sides();
    const name = `${viewer.headName(first.layer, first.head, first.lens)}, ${first.lens === second.lens ? first.lens : `${first.lens} and ${second.lens}`}`;
    const change = this.panels.find((panel) => panel.name === "difference");
    const read = change ? change.instead || readDifference(change) : "";
    const hidden = this.panels.slice(0, 2).map((panel) => readHidden(panel.map, { name: panel.name }));
    return [`${name}: ${first.name} beside ${second.name}.`, this.why([first, second]), this.readCosine(first), read, ...hidden].filter(Boolean).join(" ");
  }

  private readCosine(first: Side): string {
    const { viewer } = this;
    const scalar = this.cosines();
    const known = scalar ? viewer.value(scalar, first.layer, first.head).value : this.alike ? cosine(this.panels[0]!.weights, this.panels[1]!.weights) : NaN;
    if (known === null || Number.isNaN(known)) return "";
    if (!scalar) return `The cosine of these two maps is ${formatNumber(known)}.`;
    const least = leastAlike(scalar.values);
    return `Cosine ${formatNumber(known)}${least ? `; ${this.readLeast(least)}` : ""}.`;
  }

  private readLeast({ layer, head, value, ties, of }: NonNullable<ReturnType<typeof leastAlike>>): string {
    if (ties === of && of > 1) return `all ${of} heads tie`;
    return `least alike of all heads: ${ties > 1 ? `${ties}, which tie at ${formatNumber(value)}` : `${this.name(layer, head)} (${formatNumber(value)})`}`;
  }

  destroy(): void {
    this.ask = -1;
    this.pictures.destroy();
    for (const part of [this.controls, this.box, this.tip.element]) part.remove();
  }
}

function sameShape(first: MapData, second: MapData): boolean {
  return first.rows === second.rows && first.columns === second.columns;
}

/** The second minus the first, or a sentence where they are the same. */
function differencePanel(first: Panel, second: Panel): Panel {
  const instead = sameMaps(first.map, second.map) ? `There is no difference between ${first.name} and ${second.name} in this head.` : "";
  return { ...second, parts: [first.map, second.map], name: "difference", title: `${second.name} − ${first.name}`, weights: difference(second.map, first.map), signed: true, instead };
}

/** The sheets that have maps. */
function shownSheets(viewer: Viewer): number[] {
  return viewer.header.sheets.flatMap((sheet, index) => (sheet.lenses.length ? [index] : []));
}

/** The chosen second sheet; where that is the first one too, the next that has maps. */
function secondSheet(viewer: Viewer): number {
  const { sheet, second } = viewer.state;
  const others = shownSheets(viewer).filter((index) => index !== sheet);
  return others.includes(second) ? second : (others.find((index) => index > sheet) ?? others[0] ?? sheet);
}

export const modelsView: View = {
  name: "models",
  title: "Side by side",
  key: "6",
  controls: ["lens", "layer", "head", "side", "words", "special", "window", "search"],
  available: (viewer) => shownSheets(viewer).length > 1 && shownSheets(viewer).includes(viewer.state.sheet),
  open: (viewer, element) => new Models(viewer, element),
};
