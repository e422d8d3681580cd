/** Maps beside one another, with titles, one cursor and one selection. */
import { make } from "./dom";
import { errorAt, formatNumber, formatPercent, noteError, quote, withError } from "./format";
import { type Cell, EDGE, HeatMap, labelWidth } from "./heatmap";
import { selectedUnits, selectUnit } from "./selection";
import { Svg } from "./svg";
import { Tip } from "./tip";
import type { MapData, Table, Viewer } from "./types";

export interface Panel {
  name: string;
  /** The quantity, or what is subtracted from what. */
  title: string;
  map: MapData;
  /** The maps that the weights are made of, where it is not the map alone. */
  parts?: readonly MapData[];
  weights: Float32Array;
  signed: boolean;
  limit: number;
  /** A sentence in place of the picture. */
  instead: string;
}

interface Place {
  heat: HeatMap;
  title: HTMLElement;
  text: HTMLElement;
  element: HTMLElement;
}

const ARROWS: Record<string, readonly [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Panels of the same tokens share their cursor and the labels of their rows; others have their own. */
export class Panels {
  private readonly box = make("div", "hs-panels");
  private readonly tip: Tip;
  private places: Place[] = [];
  private panels: readonly Panel[] = [];
  private alike = true;
  private cursor: Cell | null = null;
  private active = 0;

  constructor(private readonly viewer: Viewer, private readonly element: HTMLElement) {
    element.append(this.box);
    this.tip = new Tip(element);
  }

  /** Draw panels; `alike` says whether all have the same tokens. */
  draw(panels: readonly Panel[], alike = true): void {
    [this.panels, this.alike] = [panels, alike];
    while (this.places.length < panels.length) this.add();
    this.keepCursor();
    const width = Math.max(280, this.element.clientWidth);
    const across = Math.min(panels.length, width < 560 ? 1 : width < 900 ? 2 : 4);
    const cell = Math.min(...panels.map((panel) => this.cellSize(panel, width, across)));
    this.places.forEach((place, i) => {
      place.element.hidden = !panels[i];
      if (panels[i]) this.drawPanel(place, panels[i], i % across === 0 || !alike || Boolean(panels[i - 1]?.instead), this.plotWidth(panels[i], width, across), cell);
    });
    this.mark();
  }

  private plotWidth(panel: Panel, width: number, across: number): number {
    const left = this.labels(panel);
    return (width - (this.alike ? left : across * left) - (20 + EDGE) * across) / across;
  }

  private cellSize(panel: Panel, width: number, across: number): number {
    const plot = this.plotWidth(panel, width, across);
    return Math.min(30, plot / panel.map.columns, Math.max(420, plot) / panel.map.rows);
  }

  private labels(panel: Panel): number {
    return labelWidth(this.places[0]!.heat.canvas.getContext("2d")!, panel.map.queries);
  }

  private drawPanel({ heat, title, text }: Place, panel: Panel, labelled: boolean, plot: number, cell: number): void {
    const left = this.labels(panel);
    title.textContent = columnName(panel);
    title.title = panel.title;
    heat.canvas.setAttribute("aria-label", `Attention map of ${columnName(panel)}`);
    text.textContent = panel.instead;
    text.hidden = !panel.instead;
    heat.element.hidden = panel.instead !== "";
    text.style.width = `${Math.min(plot, 360)}px`;
    title.style.paddingLeft = labelled && !panel.instead ? `${left}px` : `${EDGE}px`;
    const shape = { width: plot + left + 6, height: 4000, labels: { left: labelled, top: true }, marginals: false, bar: "below" as const, largestCell: cell };
    if (!panel.instead) heat.draw({ map: panel.map, weights: panel.weights, signed: panel.signed, limit: panel.limit, label: panel.title, zoom: null }, shape);
  }

  private add(): void {
    const index = this.places.length;
    const heat = new HeatMap(this.viewer, "Attention map");
    const [title, text] = [make("h3", "hs-panel-title"), make("p", "hs-instead", { hidden: true })];
    const element = make("section", "hs-panel", {}, title, text, heat.element);
    heat.canvas.addEventListener("pointermove", (event) => this.point(index, heat.hit(event), event));
    heat.canvas.addEventListener("pointerleave", () => this.point(index, null));
    heat.canvas.addEventListener("click", (event) => this.select(index, heat.hit(event), event));
    heat.canvas.addEventListener("focus", () => this.focus(index));
    this.box.append(element);
    this.places.push({ heat, title, text, element });
  }

  /** Forget a cursor that is outside of what is shown now. */
  private keepCursor(): void {
    const map = (this.panels[this.active] ?? this.panels[0])?.map;
    if (!this.panels[this.active]) this.active = 0;
    if (map && this.cursor && (this.cursor.row >= map.rows || this.cursor.column >= map.columns)) this.cursor = null;
  }

  /** The keyboard's cursor follows the panel that has the focus, where panels have tokens of their own. */
  private focus(index: number): void {
    if (this.alike || index === this.active) return;
    [this.active, this.cursor] = [index, null];
  }

  private select(index: number, cell: Cell | null, event: MouseEvent): void {
    if (!this.alike && index > 0) return;
    const map = this.panels[0]?.map;
    const { side } = this.viewer.state;
    const unit = cell && map ? (side === "query" ? map.queries[cell.row] : map.keys[cell.column]) : undefined;
    if (unit) selectUnit(this.viewer, unit, side, event.ctrlKey || event.metaKey || event.shiftKey);
  }

  private point(index: number, cell: Cell | null, event?: PointerEvent): void {
    const changed = cell?.row !== this.cursor?.row || cell?.column !== this.cursor?.column || index !== this.active;
    [this.active, this.cursor] = [index, cell];
    if (cell && event) this.tip.show(event.clientX, event.clientY, this.lines(cell));
    else this.tip.hide();
    if (changed) this.mark();
  }

  private mark(): void {
    const map = this.panels[0]?.map;
    if (!map) return;
    const { side } = this.viewer.state;
    const chosen = { [side === "query" ? "rows" : "columns"]: selectedUnits(this.viewer, side === "query" ? map.queries : map.keys) };
    this.places.forEach(({ heat, element }, i) => {
      if (!element.hidden) heat.mark(this.alike || i === this.active ? this.cursor : null, this.alike || i === 0 ? chosen : {});
    });
  }

  /** The tokens of a cell, and its weight in each panel that has this cell. */
  private lines(cell: Cell): string[] {
    const shown = this.alike ? this.panels : this.panels.slice(this.active, this.active + 1);
    const { map } = shown[0]!;
    const [at, terms] = [cell.row * map.columns + cell.column, map.keys[cell.column]!.tokens.length];
    const numbers = shown
      .filter((panel) => panel.name !== "difference" || !panel.instead)
      .map((panel) => `${columnName(panel)}: ${Number.isNaN(panel.weights[at]!) ? "masked" : withError(panel.weights[at]!, errorAt(panel.parts ?? [panel.map], at, terms))}`);
    return [`${quote(map.queries[cell.row]!.text)} → ${quote(map.keys[cell.column]!.text)}`, ...numbers];
  }

  /** Shift and arrows move the cursor. */
  keydown(event: KeyboardEvent): boolean {
    const map = (this.alike ? this.panels[0] : this.panels[this.active])?.map;
    const move = ARROWS[event.key];
    if (!map || !event.shiftKey || !move) return false;
    const { row, column } = this.cursor ?? { row: 0, column: 0 };
    this.cursor = { row: Math.max(0, Math.min(map.rows - 1, row + move[0])), column: Math.max(0, Math.min(map.columns - 1, column + move[1])) };
    const said = this.lines(this.cursor).join("; ");
    this.mark();
    this.viewer.status(said);
    this.viewer.announce(said);
    return true;
  }

  /** All cells: a column for each panel, or rows of each panel where they have tokens of their own. */
  table(title: string): Table {
    const caption = `${title}${noteError(this.panels.filter((panel) => !panel.instead).map((panel) => panel.parts ?? [panel.map]))}`;
    const places = ["query", "query token", "key", "key token"];
    if (this.alike) return { caption, columns: [...places, ...this.panels.map(columnName)], rows: this.panels[0] ? listCells(this.panels) : [] };
    const rows = this.panels.flatMap((panel) => listCells([panel]).map((row) => [panel.name, ...row]));
    return { caption, columns: ["maps", ...places, this.panels[0]?.title ?? "weight"], rows };
  }

  svg(title: string): string {
    const { palette } = this.viewer;
    const shown = this.places.filter(({ element, heat }, i) => !element.hidden && heat.layout && !this.panels[i]!.instead);
    const width = shown.reduce((sum, { heat }) => sum + heat.layout!.total[0] + 16, 16);
    const height = Math.max(0, ...shown.map(({ heat }) => heat.layout!.total[1])) + 48;
    const svg = new Svg(width, height, palette.background, title);
    let x = 8;
    for (const { heat, title: name } of shown) {
      svg.text(x + heat.layout!.x, 20, name.textContent ?? "", { "font-size": 14, "font-weight": 600, fill: palette.ink });
      heat.vectors(svg, x, 36);
      x += heat.layout!.total[0] + 16;
    }
    return svg.toString();
  }

  destroy(): void {
    this.tip.element.remove();
    this.box.remove();
  }
}

function columnName(panel: Panel): string {
  return panel.name === "difference" ? panel.title : panel.name;
}

function listCells(panels: readonly Panel[]): (string | number | null)[][] {
  const { map } = panels[0]!;
  return Array.from({ length: map.rows * map.columns }, (_, at) => {
    const [query, key] = [map.queries[Math.floor(at / map.columns)]!, map.keys[at % map.columns]!];
    const numbers = panels.map((panel) => (Number.isFinite(panel.weights[at]!) ? panel.weights[at]! : null));
    return [query.tokens[0]!, query.text, key.tokens[0]!, key.text, ...numbers];
  });
}

/** "effective − raw is largest in size from “is” to “[SEP]” (−0.31); 40 % of the weights fall." */
export function readDifference({ title, weights, map }: Panel): string {
  let [largest, falling, count] = [0, 0, 0];
  weights.forEach((weight, i) => {
    if (Number.isNaN(weight)) return;
    count++;
    if (weight < 0) falling++;
    if (Math.abs(weight) > Math.abs(weights[largest]!) || Number.isNaN(weights[largest]!)) largest = i;
  });
  const [query, key] = [map.queries[Math.floor(largest / map.columns)]!, map.keys[largest % map.columns]!];
  return `${title} is largest in size from ${quote(query.text)} to ${quote(key.text)} (${formatNumber(weights[largest]!)}); ${formatPercent(falling / Math.max(1, count))} of the weights fall.`;
}
