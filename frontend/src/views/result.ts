/** A result of any kind: its sentence, its tables, which can be sorted, and its figures. */
import { make, makeButton } from "../dom";
import { download, toCsv } from "../exporting";
import { count, formatNumber, keepTogether } from "../format";
import { sortKey, sortRows, splitNumbers } from "../sorting";
import type { OpenView, Result, ResultTable, Table, View, Viewer } from "../types";

type Figure = Result["figures"][number];
type Order = { column: number; descending: boolean } | null;

class ResultView implements OpenView {
  private readonly box = make("div", "hs-result");
  private readonly urls = new Map<string, string>();
  private shown: Result | null = null;
  private chosen: ResultTable | null = null;
  private figure: Figure | null = null;
  private alive = true;

  constructor(private readonly viewer: Viewer, element: HTMLElement) {
    element.append(this.box);
  }

  update(): void {
    const { result } = this.viewer.header;
    if (result && result !== this.shown) this.fill(result);
    this.viewer.drawn();
  }

  /** Each table, followed by the figures that are named after it; then all other figures. */
  private fill(result: Result): void {
    this.shown = result;
    [this.chosen, this.figure] = [result.tables[0] ?? null, result.figures[0] ?? null];
    const left = new Set(result.figures);
    const parts = result.tables.flatMap((table) => {
      const own = [...left].filter((figure) => figure.name === table.name || figure.name.startsWith(`${table.name}_`));
      for (const figure of own) left.delete(figure);
      return [this.makeTablePart(table), this.makeFigures(own)];
    });
    this.box.replaceChildren(...parts, this.makeFigures([...left]));
    void this.loadFigures(result).catch((error) => this.viewer.fail(error));
  }

  private makeTablePart(table: ResultTable): HTMLElement {
    const place = make("div", "hs-scroll", { tabindex: 0, role: "region", "aria-label": title(table.name) });
    const save = makeButton("CSV", () => this.saveTable(table), { "aria-label": `Save the table ${title(table.name)} as CSV` });
    this.fillTable(place, table, null);
    return make("section", "hs-part", {}, make("div", "hs-part-title", {}, make("h3", "hs-panel-title", {}, title(table.name)), save), place);
  }

  private fillTable(place: HTMLElement, table: ResultTable, order: Order): void {
    const rows = order ? sortRows(table.rows, order.column, order.descending) : table.rows;
    const numeric = table.columns.map((_, column) => isNumeric(table, column));
    const head = table.columns.map((name, column) => this.makeHeading(place, table, order, name, column, numeric[column]!));
    const body = rows.map((row) => make("tr", "", {}, ...row.map((cell, column) => make("td", numeric[column] ? "hs-number" : "", {}, written(cell)))));
    const caption = make("caption", "", {}, keepTogether(table.caption));
    place.replaceChildren(make("table", "hs-result-table", {}, caption, make("thead", "", {}, make("tr", "", {}, ...head)), make("tbody", "", {}, ...body)));
  }

  /** A heading that sorts by its column: first upwards, then downwards, then as it was. */
  private makeHeading(place: HTMLElement, table: ResultTable, order: Order, name: string, column: number, numeric: boolean): HTMLElement {
    const chosen = order?.column === column ? order : null;
    const button = make("button", "hs-sort", { type: "button", title: `Sort by ${name}` }, `${name}${chosen ? (chosen.descending ? " ▾" : " ▴") : ""}`);
    button.addEventListener("click", () => {
      this.chosen = table;
      this.fillTable(place, table, chosen ? (chosen.descending ? null : { column, descending: true }) : { column, descending: false });
      place.querySelectorAll<HTMLElement>(".hs-sort")[column]?.focus();
      this.viewer.announce(chosen?.descending ? "In the order of the result." : `Sorted by ${name}, ${chosen ? "largest" : "smallest"} first.`);
    });
    const sorted = chosen ? (chosen.descending ? "descending" : "ascending") : null;
    return make("th", numeric ? "hs-number" : "", { scope: "col", "aria-sort": sorted }, button);
  }

  private makeFigures(figures: readonly Figure[]): HTMLElement {
    return make("div", "hs-panels", { hidden: !figures.length }, ...figures.map((figure) => this.makeFigure(figure)));
  }

  private makeFigure(figure: Figure): HTMLElement {
    const picture = make("img", "", { alt: figure.caption, "data-figure": figure.name });
    const save = makeButton("SVG", () => void this.saveFigure(figure).catch((error) => this.viewer.fail(error)), { "aria-label": `Save the figure ${title(figure.name)} as SVG` });
    return make("figure", "hs-figure", {}, picture, make("figcaption", "", {}, figure.caption, " ", save));
  }

  /** One after another: a studio draws each when it is asked for. */
  private async loadFigures(result: Result): Promise<void> {
    for (const figure of result.figures) {
      const url = await this.url(figure);
      if (!this.alive || this.shown !== result) return;
      const picture = [...this.box.querySelectorAll("img")].find((each) => each.dataset["figure"] === figure.name);
      if (picture) picture.src = url;
    }
    this.viewer.drawn({ figures: result.figures.length });
  }

  private async url(figure: Figure): Promise<string> {
    const known = this.urls.get(figure.block);
    if (known) return known;
    const made = URL.createObjectURL(new Blob([await this.viewer.source.block(figure.block)], { type: "image/svg+xml" }));
    this.urls.set(figure.block, made);
    return made;
  }

  private saveTable(table: ResultTable): void {
    this.chosen = table;
    download(`${table.name}.csv`, new Blob(["\ufeff", toCsv(toTable(table))], { type: "text/csv" }));
  }

  private async saveFigure(figure: Figure): Promise<void> {
    this.figure = figure;
    download(`${figure.name}.svg`, new Blob([await this.viewer.source.block(figure.block)], { type: "image/svg+xml" }));
  }

  /** The table that was sorted or saved last, else the first. */
  async table(): Promise<Table> {
    return this.chosen ? this.named(toTable(this.chosen)) : { caption: this.describe(), columns: [], rows: [] };
  }

  /** A table whose caption says which of several it is. */
  private named(table: Table): Table {
    const { tables } = this.viewer.header.result!;
    const at = tables.indexOf(this.chosen!);
    return tables.length < 2 ? table : { ...table, caption: `${title(this.chosen!.name)}, table ${at + 1} of ${tables.length}; the others have buttons of their own. ${table.caption}` };
  }

  figureName(): string {
    const figures = this.viewer.header.result?.figures ?? [];
    const at = figures.indexOf(this.figure!);
    return figures.length < 2 ? "" : `${title(this.figure!.name)}, figure ${at + 1} of ${figures.length}; the others have buttons of their own.`;
  }

  /** The figure that was saved last, else the first. */
  async svg(): Promise<string> {
    if (!this.figure) throw new Error("this result has no figure; export its numbers as CSV");
    return new TextDecoder().decode(await this.viewer.source.block(this.figure.block));
  }

  async png(): Promise<HTMLCanvasElement> {
    if (!this.figure) throw new Error("this result has no figure; export its numbers as CSV");
    const picture = new Image();
    picture.src = await this.url(this.figure);
    await picture.decode();
    const canvas = make("canvas", "", { width: 2 * picture.naturalWidth, height: 2 * picture.naturalHeight });
    const context = canvas.getContext("2d")!;
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return canvas;
  }

  python(): string {
    const known = /^data = /m.test(this.viewer.header.sheets[this.viewer.state.sheet]?.python ?? "");
    return known ? "hs.draw(data)" : 'hs.draw(hs.open_result("result.nc"))  # the file of this result';
  }

  describe(): string {
    const { result } = this.viewer.header;
    if (!result) return "";
    return `${result.lead.replaceAll("`", "")} ${count(result.tables.length, "table")} and ${count(result.figures.length, "figure")}.`;
  }

  destroy(): void {
    this.alive = false;
    for (const url of this.urls.values()) URL.revokeObjectURL(url);
    this.box.remove();
  }
}

/** "by_lens_pattern" as "By lens pattern". */
function title(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function written(cell: string | number | null): string {
  return typeof cell === "number" ? formatNumber(cell) : cell || "–";
}

function isNumeric(table: ResultTable, column: number): boolean {
  return table.rows.every((row) => typeof sortKey(row[column] ?? null) !== "string");
}

function toTable(table: ResultTable): Table {
  return { caption: table.caption, ...splitNumbers(table.columns, table.rows) };
}

export const resultView: View = {
  name: "result",
  title: "Result",
  key: "7",
  controls: [],
  available: (viewer) => viewer.header.result !== null,
  open: (viewer, element) => new ResultView(viewer, element),
};
