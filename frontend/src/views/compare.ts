/** One head through several lenses, and their difference, with one cursor. */
import { make } from "../dom";
import { errorOf } from "../decode";
import { formatNumber, formatPercent, quote } from "../format";
import { type Cell, derive, HeatMap, labelWidth } from "../heatmap";
import { readHidden, readShare } from "../reading";
import { selectedUnits, selectUnit } from "../selection";
import { Svg } from "../svg";
import { Tip } from "../tip";
import { otherLens } from "../toolbar";
import type { LensHeader, MapData, OpenView, Table, View, Viewer } from "../types";

/** Lenses whose weights are not shares of attention: their maps have a scale of their own, and no difference. */
const OTHER_UNITS = ["norm", "gradient"];

/** Whether two lenses have weights that can be subtracted. */
export function comparable(first: string, second: string): boolean {
  const unit = (name: string): string => OTHER_UNITS.find((other) => name.startsWith(other)) ?? "attention";
  return unit(first) === unit(second);
}

/** Whether two maps are the same as far as their codecs can tell. */
export function sameMaps(first: MapData, second: MapData): boolean {
  for (let i = 0; i < first.weights.length; i++) {
    const [a, b] = [first.weights[i]!, second.weights[i]!];
    if (a !== a && b !== b) continue;
    const error = errorOf(a, first.codec, first.signed, first.scale) + errorOf(b, second.codec, second.signed, second.scale);
    if (!(Math.abs(a - b) <= 1.05 * error + 1e-6)) return false;
  }
  return true;
}

interface Panel {
  name: string;
  title: string;
  map: MapData;
  weights: Float32Array;
  signed: boolean;
  limit: number;
  /** A sentence in place of the picture. */
  instead: string;
}

class Compare implements OpenView {
  private readonly box = make("div", "hs-panels");
  private readonly tip: Tip;
  private heats: { heat: HeatMap; title: HTMLElement; text: HTMLElement; element: HTMLElement }[] = [];
  private panels: Panel[] = [];
  private cursor: Cell | null = null;
  private ask = 0;

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    element.append(this.box);
    this.tip = new Tip(element);
  }

  private lenses(): LensHeader[] {
    return this.viewer.sheet().lenses.filter((lens) => !lens.merged);
  }

  /** The two lenses of the difference: the chosen one minus the other. */
  private pair(): [string, string] {
    const { state } = this.viewer;
    const lens = this.viewer.lens().merged ? this.lenses()[1]!.name : state.lens;
    const other = otherLens(this.viewer);
    if (lens === "raw" && !state.other) return [this.lenses().find((each) => each.name !== "raw" && comparable(each.name, "raw"))?.name ?? other, "raw"];
    return [lens, other];
  }

  update(): void {
    void this.load(++this.ask).catch((error) => this.viewer.fail(error));
  }

  private async load(ask: number): Promise<void> {
    const { viewer } = this;
    const { sheet, layer, head } = viewer.state;
    const began = performance.now();
    const names = this.lenses().map((lens) => lens.name);
    const maps = await Promise.all(names.map((name) => viewer.map(sheet, name, layer, head)));
    if (ask !== this.ask) return;
    this.panels = this.makePanels(names, maps);
    this.draw();
    viewer.drawn({ layer, head, panels: this.panels.length, ms: performance.now() - began });
  }

  /** Panels of all lenses and of the difference; weights of one unit share one scale. */
  private makePanels(names: readonly string[], maps: readonly MapData[]): Panel[] {
    const [lens, other] = this.pair();
    const attention = maps.filter((map, i) => comparable(names[i]!, "raw") && !map.missing);
    const shared = Math.max(0, ...attention.map((map) => derive(map.weights, map.rows, map.columns).limit)) || 1;
    const panels: Panel[] = names.map((name, i) => {
      const map = maps[i]!;
      const own = derive(map.weights, map.rows, map.columns).limit;
      const limit = comparable(name, "raw") ? shared : own;
      return { name, title: this.viewer.lens(name).quantity, map, weights: map.weights, signed: map.signed, limit, instead: map.missing ?? "" };
    });
    const [a, b] = [panels.find((panel) => panel.name === lens), panels.find((panel) => panel.name === other)];
    if (a && b && !a.instead && !b.instead) panels.push(this.differencePanel(a, b));
    return panels;
  }

  private differencePanel(a: Panel, b: Panel): Panel {
    const base = { name: "difference", title: `${a.name} − ${b.name}`, map: a.map, signed: true, limit: b.limit };
    if (!comparable(a.name, b.name)) {
      const instead = `${a.name} and ${b.name} have different units, so their difference means nothing. Choose another lens.`;
      return { ...base, weights: a.weights, instead };
    }
    const weights = a.weights.map((weight, i) => weight - b.weights[i]!) as Float32Array;
    if (!sameMaps(a.map, b.map)) return { ...base, weights, instead: "" };
    const why = this.viewer.lens(a.name).note || `${a.name} and ${b.name} are the same map here, as far as the stored digits can tell.`;
    a.instead = why;
    return { ...base, weights, instead: `There is no difference between ${a.name} and ${b.name} in this head.` };
  }

  private draw(): void {
    while (this.heats.length < this.panels.length) this.addPanel();
    const map = this.panels[0]!.map;
    const width = Math.max(280, this.element.clientWidth);
    const columns = Math.min(this.panels.length, width < 560 ? 1 : width < 900 ? 2 : 4);
    const left = labelWidth(this.heats[0]!.heat.canvas.getContext("2d")!, map.queries);
    const plot = (width - left - 22 * columns) / columns;
    const cell = Math.min(30, plot / map.columns, Math.max(420, plot) / map.rows);
    this.heats.forEach(({ heat, title, text, element }, i) => {
      const panel = this.panels[i];
      element.hidden = !panel;
      if (!panel) return;
      title.textContent = panel.name === "difference" ? panel.title : panel.name;
      title.title = panel.title;
      text.textContent = panel.instead;
      text.hidden = !panel.instead;
      heat.element.hidden = panel.instead !== "";
      const labels = { left: i % columns === 0 || Boolean(this.panels[i - 1]?.instead), top: true };
      text.style.width = `${Math.min(plot, 360)}px`;
      title.style.paddingLeft = labels.left && !panel.instead ? `${left}px` : "2px";
      const shape = { width: plot + left + 6, height: 4000, labels, marginals: false, bar: "below" as const, largestCell: cell };
      if (!panel.instead) heat.draw({ map: panel.map, weights: panel.weights, signed: panel.signed, limit: panel.limit, label: panel.title, zoom: null }, shape);
    });
    this.mark();
  }

  private addPanel(): void {
    const heat = new HeatMap(this.viewer, `Attention map ${this.heats.length + 1}`);
    const [title, text] = [make("h3", "hs-panel-title"), make("p", "hs-instead", { hidden: true })];
    const element = make("section", "hs-panel", {}, title, text, heat.element);
    heat.canvas.addEventListener("pointermove", (event) => this.point(heat.hit(event), event));
    heat.canvas.addEventListener("pointerleave", () => this.point(null));
    heat.canvas.addEventListener("click", (event) => this.select(heat.hit(event), event));
    this.box.append(element);
    this.heats.push({ heat, title, text, element });
  }

  private select(cell: Cell | null, event: MouseEvent): void {
    const map = this.panels[0]?.map;
    const { side } = this.viewer.state;
    const unit = cell && map ? (side === "query" ? map.queries[cell.row] : map.keys[cell.column]) : undefined;
    if (unit) selectUnit(this.viewer, unit, side, event.ctrlKey || event.metaKey || event.shiftKey);
  }

  private point(cell: Cell | null, event?: PointerEvent): void {
    const changed = cell?.row !== this.cursor?.row || cell?.column !== this.cursor?.column;
    this.cursor = cell;
    if (cell && event) this.tip.show(event.clientX, event.clientY, this.lines(cell));
    else this.tip.hide();
    if (changed) this.mark();
  }

  private mark(): void {
    const map = this.panels[0]?.map;
    if (!map) return;
    const { side } = this.viewer.state;
    const chosen = selectedUnits(this.viewer, side === "query" ? map.queries : map.keys);
    for (const { heat, element } of this.heats) if (!element.hidden) heat.mark(this.cursor, { [side === "query" ? "rows" : "columns"]: chosen });
  }

  /** The tokens of a cell, and its weight under each lens. */
  private lines(cell: Cell): string[] {
    const map = this.panels[0]!.map;
    const at = cell.row * map.columns + cell.column;
    const numbers = this.panels
      .filter((panel) => panel.name !== "difference" || !panel.instead)
      .map((panel) => `${panel.name === "difference" ? panel.title : panel.name}: ${Number.isNaN(panel.weights[at]!) ? "masked" : formatNumber(panel.weights[at]!)}`);
    return [`${quote(map.queries[cell.row]!.text)} → ${quote(map.keys[cell.column]!.text)}`, ...numbers];
  }

  keydown(event: KeyboardEvent): boolean {
    const map = this.panels[0]?.map;
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    if (!map || !event.shiftKey || !move) return false;
    const { row, column } = this.cursor ?? { row: 0, column: 0 };
    this.cursor = { row: Math.max(0, Math.min(map.rows - 1, row + move[0])), column: Math.max(0, Math.min(map.columns - 1, column + move[1])) };
    const said = this.lines(this.cursor).join("; ");
    this.mark();
    this.viewer.status(said);
    this.viewer.announce(said);
    return true;
  }

  async table(): Promise<Table> {
    const map = this.panels[0]?.map;
    const columns = ["query", "query token", "key", "key token", ...this.panels.map((panel) => (panel.name === "difference" ? panel.title : panel.name))];
    const rows: Table["rows"] = [];
    for (let row = 0; map && row < map.rows; row++)
      for (let column = 0; column < map.columns; column++) {
        const numbers = this.panels.map((panel) => finite(panel.weights[row * map.columns + column]!));
        rows.push([map.queries[row]!.tokens[0]!, map.queries[row]!.text, map.keys[column]!.tokens[0]!, map.keys[column]!.text, ...numbers]);
      }
    return { caption: `${this.viewer.headName()} through ${this.panels.length} lenses.`, columns, rows };
  }

  async svg(): Promise<string> {
    const { palette } = this.viewer;
    const shown = this.heats.filter(({ element, heat }, i) => !element.hidden && heat.layout && !this.panels[i]!.instead);
    const width = shown.reduce((sum, { heat }) => sum + heat.layout!.total[0] + 16, 16);
    const height = Math.max(0, ...shown.map(({ heat }) => heat.layout!.total[1])) + 48;
    const svg = new Svg(width, height, palette.background, this.describe());
    let x = 8;
    for (const { heat, title } of shown) {
      svg.text(x + heat.layout!.x, 20, title.textContent ?? "", { "font-size": 14, "font-weight": 600, fill: palette.ink });
      heat.vectors(svg, x, 36);
      x += heat.layout!.total[0] + 16;
    }
    return svg.toString();
  }

  python(): string {
    const { layer, head } = this.viewer.state;
    return `hs.draw(maps, "compare", lens=${JSON.stringify(this.pair()[0])}, layer=${layer}, head=${head})`;
  }

  describe(): string {
    const { viewer } = this;
    const difference = this.panels.find((panel) => panel.name === "difference");
    const name = `L${viewer.state.layer}H${viewer.state.head}`;
    const map = this.panels[0]?.map;
    if (!map) return "";
    const hidden = readHidden(map);
    if (!difference || difference.instead) return [`${name}: ${difference?.instead ?? "one picture for each lens."}`, hidden].filter(Boolean).join(" ");
    return [`${name}: ${readDifference(difference)}`, readShare(viewer), hidden].filter(Boolean).join(" ");
  }

  destroy(): void {
    this.ask = -1;
    this.tip.element.remove();
    this.box.remove();
  }
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** "effective − raw changes most from “is” to “[SEP]” (−0.31); 40 % of the weights fall." */
function readDifference({ title, weights, map }: Panel): string {
  let [largest, falling, count] = [0, 0, 0];
  weights.forEach((weight, i) => {
    if (Number.isNaN(weight)) return;
    count++;
    if (weight < 0) falling++;
    if (Math.abs(weight) > Math.abs(weights[largest]!) || Number.isNaN(weights[largest]!)) largest = i;
  });
  const [query, key] = [map.queries[Math.floor(largest / map.columns)]!, map.keys[largest % map.columns]!];
  return `${title} is largest from ${quote(query.text)} to ${quote(key.text)} (${formatNumber(weights[largest]!)}); ${formatPercent(falling / Math.max(1, count))} of the weights fall.`;
}

export const compareView: View = {
  name: "compare",
  title: "Lenses",
  key: "3",
  controls: ["lens", "other", "layer", "head", "side", "words", "special", "window", "search"],
  available: (viewer) => (viewer.header.sheets[viewer.state.sheet]?.lenses.filter((lens) => !lens.merged).length ?? 0) > 1,
  open: (viewer, element) => new Compare(viewer, element),
};
