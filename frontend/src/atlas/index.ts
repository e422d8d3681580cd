/** The atlas of a corpus: every head by two numbers, and the examples of a head. */
import { FONT, forceRatio } from "../canvas";
import { colorTable, palettes, type Palette, type Theme } from "../colors";
import { coalesce, make, makeButton, setOptions } from "../dom";
import { copyText, download, toCsv } from "../exporting";
import { count, formatNumber } from "../format";
import { Svg } from "../svg";
import { resolveTheme, watchTheme } from "../theme";
import { Tip } from "../tip";
import type { Scalar, Table } from "../types";
import { allowsLog } from "./axes";
import { Card, type CardLook } from "./card";
import { HeadFiles } from "./files";
import { Scatter, type ScatterContent, withInterval } from "./scatter";
import { defaultState, listAxes, normalize, parseFragment, scalarKey, toFragment } from "./state";
import type { AtlasHeader, AtlasState, HeadFile } from "./types";

const GROUP_TITLES: Record<string, string> = { strongest: "Strongest", median: "Median", weakest: "Weakest" };
const KEYS: readonly [string, string][] = [
  ["← → ↑ ↓", "nearest head in that direction"],
  ["Enter", "go to the examples of the chosen head"],
  ["← → on a text", "previous and next token"],
  ["Escape", "clear the token, or go back to the heads"],
  ["L", "next lens"],
  ["X", "what a token attends to, or what attends to it"],
  ["/", "find a head"],
  ["T", "table of all heads"],
  ["E", "export"],
  ["?", "this help"],
];

/** Show the atlas whose header is in an element of JSON. */
export function mountAtlas(element: HTMLElement, root = document.getElementById("headscope-root")): Atlas {
  const header = JSON.parse(element.textContent ?? "") as AtlasHeader;
  const host = root ?? document.body.appendChild(make("div"));
  return new Atlas(header, host);
}

/** The page. */
export class Atlas {
  state: AtlasState;
  private readonly axes: Scalar[];
  private readonly files = new HeadFiles();
  private readonly root = make("main", "headscope-viewer hs-atlas", { "data-host": "page" });
  private readonly scatter = new Scatter();
  private readonly tip = new Tip(this.root);
  private readonly selectX = this.makeSelect("Across", (value) => this.set({ x: value, logX: false }));
  private readonly selectY = this.makeSelect("Up", (value) => this.set({ y: value, logY: false }));
  private readonly logX = this.makeCheck("log", (on) => this.set({ logX: on }));
  private readonly logY = this.makeCheck("log", (on) => this.set({ logY: on }));
  private readonly search = make("input", "hs-search", { type: "search", placeholder: "L3H7", "aria-label": "Find a head", spellcheck: "false" });
  private readonly theme = this.makeSelect("Theme", (value) => this.set({ theme: value as AtlasState["theme"] }));
  private readonly reading = make("p", "hs-reading", { role: "status", id: "hs-atlas-reading" });
  private readonly lensSwitch = make("div", "hs-switch", { role: "radiogroup", "aria-label": "Lens" });
  private readonly sideSwitch = make("div", "hs-switch", { role: "radiogroup", "aria-label": "Token" });
  private readonly headTitle = make("h3", "hs-head-title", { tabindex: -1 });
  private readonly headNumbers = make("p", "hs-facts");
  private readonly notice = make("p", "hs-notice", { role: "status" });
  private readonly columns = make("div", "hs-columns");
  private readonly jumps = make("div", "hs-jumps", { role: "group", "aria-label": "Go to" });
  private readonly examples = make("section", "hs-examples", { "aria-label": "Examples of the chosen head" });
  private readonly table = make("div", "hs-table", { hidden: true, tabindex: 0, role: "region", "aria-label": "Numbers of all heads" });
  private readonly tableButton = makeButton("Table", () => this.toggleTable(), { title: "Table of all heads (T)", "aria-pressed": "false" });
  private readonly exportMenu = make("details", "hs-menu");
  private readonly help = this.makeHelp();
  private readonly left = make("div", "hs-scatter-frame");
  private cards: Card[] = [];
  private file: HeadFile | null = null;
  private hovered = "";
  private hoverToken: { card: number; token: number } | null = null;
  private readonly redraw = coalesce(() => this.draw());
  private readonly redrawCards = coalesce(() => this.drawCards());

  constructor(private readonly header: AtlasHeader, host: HTMLElement) {
    this.axes = listAxes(header);
    this.state = normalize(header, { ...defaultState(header), ...parseFragment(location.hash) });
    this.build();
    host.replaceChildren(this.root);
    this.listen();
    this.loadHead();
    this.draw();
  }

  /** Change the state, and everything that follows from it. */
  set(change: Partial<AtlasState>): void {
    const before = this.state;
    this.state = normalize(this.header, { ...before, ...change });
    const fragment = toFragment(this.state, defaultState(this.header));
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
    if (this.state.head !== before.head) this.loadHead();
    this.redraw();
  }

  private build(): void {
    const { header } = this;
    const facts = `${count(header.layers.length * header.heads.length, "head")} over ${count(header.examples, "example")} · ${header.site} attention · 95 % intervals`;
    this.fillExport();
    const actions = make("div", "hs-actions", {}, this.theme.field, this.tableButton, this.exportMenu, makeButton("?", () => this.help.showModal(), { "aria-label": "Help", title: "Keys (?)" }));
    const tools = make("div", "hs-tools hs-atlas-tools", { role: "group", "aria-label": "Axes" }, this.selectX.field, this.logX.field, this.selectY.field, this.logY.field, make("label", "hs-field", {}, make("span", "hs-label", {}, "Head"), this.search));
    const top = make("div", "hs-atlas-top", {}, make("div", "", {}, make("h2", "hs-title", {}, header.title), make("p", "hs-facts", {}, facts)), actions);
    this.scatter.canvas.setAttribute("aria-describedby", this.reading.id);
    this.left.append(this.scatter.canvas, this.table, this.reading);
    this.examples.append(make("div", "hs-examples-bar", {}, this.headTitle, this.lensSwitch, this.sideSwitch, this.jumps), this.headNumbers, this.notice, this.columns);
    this.root.append(top, tools, make("div", "hs-atlas-main", {}, this.left, this.examples), this.makeAbout(), this.help, this.tip.element);
    this.makeSwitch(this.lensSwitch, header.lenses.map((lens): [string, string] => [lens.name, lens.name]), (value) => this.set({ lens: value }));
    this.makeSwitch(this.sideSwitch, [["to", "attends to"], ["from", "attended by"]], (value) => this.set({ side: value as "to" | "from" }));
  }

  private listen(): void {
    const { canvas } = this.scatter;
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.unhover());
    canvas.addEventListener("click", (event) => {
      const point = this.scatter.hit(event);
      if (point) this.set({ head: point.name, example: -1, token: -1 });
    });
    canvas.addEventListener("keydown", (event) => this.moveHead(event));
    this.search.addEventListener("input", () => this.find(false));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.find(true);
      else if (event.key === "Escape") this.goBack();
    });
    document.addEventListener("keydown", (event) => this.keydown(event));
    new ResizeObserver(() => this.redraw()).observe(this.root);
    watchTheme(() => this.redraw());
    window.addEventListener("hashchange", () => {
      this.state = normalize(this.header, { ...defaultState(this.header), ...parseFragment(location.hash) });
      this.loadHead();
      this.redraw();
    });
  }

  private moveHead(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && this.state.head) this.headTitle.focus();
    else if (event.key.startsWith("Arrow")) {
      const point = this.scatter.move(this.state.head, event.key);
      if (point) this.set({ head: point.name, example: -1, token: -1 });
    } else return;
    event.preventDefault();
  }

  private keydown(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const names = this.header.lenses.map((lens) => lens.name);
    const actions: Record<string, () => void> = {
      l: () => this.set({ lens: names[(names.indexOf(this.state.lens) + 1) % names.length]! }),
      x: () => this.set({ side: this.state.side === "to" ? "from" : "to" }),
      t: () => this.toggleTable(),
      e: () => void (this.exportMenu.open = !this.exportMenu.open),
      "/": () => this.search.focus(),
      "?": () => this.help.showModal(),
      escape: () => this.goBack(),
    };
    const action = actions[event.key.toLowerCase()];
    if (!action || this.help.open) return;
    event.preventDefault();
    action();
  }

  /** Close the menu, or forget the token, or go to the heads. */
  private goBack(): void {
    if (this.exportMenu.open) this.exportMenu.open = false;
    else if (this.state.example >= 0) this.set({ example: -1, token: -1 });
    else (this.table.hidden ? this.scatter.canvas : this.table).focus();
  }

  /** Choose the head that the search box names: L3H7, l3h7, 3.7 or 3 7. */
  private find(entered: boolean): void {
    const match = /^\s*l?\s*(\d+)\s*(?:h|[.,:\s])\s*(\d+)\s*$/i.exec(this.search.value);
    const name = match ? `L${Number(match[1])}H${Number(match[2])}` : "";
    const known = Object.hasOwn(this.header.files, name);
    this.search.setAttribute("aria-invalid", String(this.search.value !== "" && !known));
    if (known) this.set({ head: name, example: -1, token: -1 });
    if (known && entered) this.headTitle.focus();
    else if (entered) this.notice.textContent = `There is no head “${this.search.value}”. Heads are L${this.header.layers[0]}H${this.header.heads[0]} to L${this.header.layers.at(-1)}H${this.header.heads.at(-1)}.`;
  }

  private loadHead(): void {
    const { head } = this.state;
    this.file = null;
    this.cards = [];
    this.hoverToken = null;
    this.columns.replaceChildren();
    this.jumps.replaceChildren();
    this.notice.textContent = head ? `Loading ${head} …` : "Choose a head: click a point, use the arrow keys, or write its name.";
    if (!head) return;
    this.files.load(head).then(
      (file) => head === this.state.head && this.showFile(file),
      (error: Error) => head === this.state.head && void (this.notice.textContent = error.message),
    );
  }

  private showFile(file: HeadFile): void {
    this.file = file;
    this.notice.textContent = file.examples.length ? "" : "No example has a value for this head.";
    this.cards = file.examples.map((example, index) => {
      const rank = file.examples.slice(0, index + 1).filter((other) => other.group === example.group).length;
      return new Card(example, rank, pretty(this.header.activity.name), {
        hover: (token) => this.hoverCard(index, token),
        choose: (token) => this.set(token < 0 ? { example: -1, token: -1 } : { example: index, token }),
      });
    });
    const groups = this.header.groups.filter((group) => file.examples.some((example) => example.group === group));
    const columns = groups.map((group) => this.makeColumn(group));
    this.columns.replaceChildren(...columns);
    this.jumps.replaceChildren(...groups.map((group, index) => makeButton(title(group), () => columns[index]!.scrollIntoView())));
    this.draw();
  }

  private makeColumn(group: string): HTMLElement {
    const cards = this.cards.filter((card) => card.example.group === group);
    const heading = make("h3", "hs-panel-title", {}, title(group));
    return make("section", "hs-column", { "aria-label": `${title(group)} examples` }, heading, ...cards.map((card) => card.element));
  }

  private hoverCard(card: number, token: number): void {
    this.hoverToken = token < 0 ? null : { card, token };
    this.redrawCards();
  }

  private hover(event: MouseEvent): void {
    const point = this.scatter.hit(event);
    this.scatter.canvas.classList.toggle("hs-on-head", point !== null);
    if (point) {
      const { x, y } = this.content();
      this.tip.show(event.clientX, event.clientY, [point.name, `${axisTitle(x)}: ${withInterval(point.x, point.xLow, point.xHigh)}`, `${axisTitle(y)}: ${withInterval(point.y, point.yLow, point.yHigh)}`, x.n ?? y.n ?? ""].filter(Boolean));
    } else this.tip.hide();
    const name = point?.name ?? "";
    if (name !== this.hovered) {
      this.hovered = name;
      this.redraw();
    }
  }

  private unhover(): void {
    this.tip.hide();
    this.hovered = "";
    this.redraw();
  }

  private get theme_(): Theme {
    return resolveTheme(this.state.theme);
  }

  private get palette(): Palette {
    return palettes[this.theme_];
  }

  private content(): ScatterContent {
    const { state, header } = this;
    const [x, y] = [state.x, state.y].map((key) => this.axes.find((axis) => scalarKey(axis) === key) ?? this.axes[0]!) as [Scalar, Scalar];
    const [logX, logY] = [state.logX && allowsLog(x), state.logY && allowsLog(y)];
    return { x, y, titleX: longTitle(x), titleY: longTitle(y), logX, logY, layers: header.layers, heads: header.heads, chosen: state.head };
  }

  private look(): CardLook {
    const theme = this.theme_;
    const lens = Math.max(0, this.header.lenses.findIndex((each) => each.name === this.state.lens));
    return { palette: this.palette, colors: (signed) => colorTable(theme, signed), lens, lenses: this.header.lenses, side: this.state.side, unit: this.header.unit };
  }

  private draw(): void {
    this.root.dataset["theme"] = this.theme_;
    this.syncControls();
    const content = this.content();
    this.scatter.canvas.setAttribute("aria-label", `Heads by ${axisTitle(content.x)} and ${axisTitle(content.y)}; arrow keys choose a head`);
    this.scatter.draw(content, this.palette, colorTable(this.theme_, false), this.hovered, this.left.clientWidth || 640);
    this.reading.textContent = this.describe(content);
    this.drawHead();
    if (!this.table.hidden) this.fillTable(content);
    performance.mark("headscope:view", { detail: { view: "atlas", head: this.file ? this.state.head : "" } });
  }

  private drawHead(): void {
    const { head } = this.state;
    this.headTitle.textContent = head || "No head";
    this.headNumbers.textContent = head ? this.listNumbers(head) : "";
    this.drawCards();
  }

  private drawCards(): void {
    const { example, token } = this.state;
    const [look, hover] = [this.look(), this.hoverToken];
    this.cards.forEach((card, index) => {
      const shown = hover?.card === index ? hover.token : example === index ? token : -1;
      card.draw(look, shown, card.element.clientWidth || 320);
    });
  }

  /** What the picture shows, in sentences. */
  private describe(content: ScatterContent): string {
    const { points } = this.scatter;
    const [x, y] = [axisTitle(content.x), axisTitle(content.y)];
    const missing = content.layers.length * content.heads.length - points.length;
    const shown = `${count(points.length, "head")} by ${x} and ${y}${content.x.n ? ` (${content.x.n})` : ""}.${missing ? ` ${count(missing, "head")} without these numbers: pruned, or not a number.` : ""}`;
    const chosen = points.find((point) => point.name === content.chosen);
    if (!chosen) return shown;
    const rank = 1 + points.filter((point) => point.y > chosen.y).length;
    const numbers = `${x} ${withInterval(chosen.x, chosen.xLow, chosen.xHigh)}, ${y} ${withInterval(chosen.y, chosen.yLow, chosen.yHigh)}`;
    return `${shown} ${chosen.name}: ${numbers}; by ${y} it is number ${rank} of ${points.length}, largest first.`;
  }

  private listNumbers(head: string): string {
    const [i, j] = this.indices(head);
    const main = this.header.scalars.filter((scalar) => !scalar.classes && scalar.lens !== "difference" && !scalar.name.includes("absolute") && !scalar.name.includes(" "));
    return main
      .filter((scalar) => scalar.lens === null || scalar.lens === this.state.lens)
      .flatMap((scalar) => {
        const value = scalar.values[i]?.[j] ?? null;
        return value === null ? [] : [`${pretty(scalar.name)} ${withInterval(value, scalar.low?.[i]?.[j] ?? null, scalar.high?.[i]?.[j] ?? null)}`];
      })
      .join(" · ");
  }

  private indices(name: string): [number, number] {
    const match = /^L(\d+)H(\d+)$/.exec(name);
    return [this.header.layers.indexOf(Number(match?.[1])), this.header.heads.indexOf(Number(match?.[2]))];
  }

  private syncControls(): void {
    const { state, header } = this;
    const options = this.axes.map((axis): [string, string] => [scalarKey(axis), optionText(axis)]);
    setOptions(this.selectX.select, options, state.x);
    setOptions(this.selectY.select, options, state.y);
    setOptions(this.theme.select, [["auto", "auto"], ["light", "light"], ["dark", "dark"]], state.theme);
    const content = this.content();
    for (const [control, axis, on] of [[this.logX, content.x, content.logX], [this.logY, content.y, content.logY]] as const) {
      control.box.disabled = !allowsLog(axis);
      control.box.checked = on;
      control.field.title = allowsLog(axis) ? "Logarithmic axis" : "Only for positive numbers that span a factor of 3";
    }
    this.examples.querySelectorAll<HTMLInputElement>('input[type="radio"]').forEach((input) => {
      input.checked = input.value === state.lens || input.value === state.side;
    });
    this.lensSwitch.hidden = header.lenses.length < 2;
    this.sideSwitch.hidden = this.file?.examples[0]?.keys != null;
  }

  /** Show the heads as a table in the place of the picture, or the picture again. */
  private toggleTable(): void {
    const shown = this.table.hidden;
    [this.table.hidden, this.scatter.canvas.hidden] = [!shown, shown];
    this.tableButton.setAttribute("aria-pressed", String(shown));
    if (shown) this.fillTable(this.content());
    (shown ? this.table : this.scatter.canvas).focus();
  }

  private fillTable(content: ScatterContent): void {
    const [x, y] = [axisTitle(content.x), axisTitle(content.y)];
    const key = JSON.stringify([x, y]);
    if (this.table.dataset["key"] === key) return this.markChosen();
    this.table.dataset["key"] = key;
    const columns = ["head", x, "interval", y, "interval"];
    const span = (low: number | null, high: number | null): string => (low === null || high === null ? "–" : `[${formatNumber(low)}, ${formatNumber(high)}]`);
    const points = [...this.scatter.points].sort((a, b) => b.y - a.y);
    const body = make("tbody");
    for (const point of points) {
      const name = makeButton(point.name, () => this.set({ head: point.name, example: -1, token: -1 }));
      body.append(make("tr", "", {}, make("td", "", {}, name), ...[formatNumber(point.x), span(point.xLow, point.xHigh), formatNumber(point.y), span(point.yLow, point.yHigh)].map((text) => make("td", "hs-number", {}, text))));
    }
    const head = make("tr", "", {}, ...columns.map((text, index) => make("th", index ? "hs-number" : "", { scope: "col" }, text)));
    this.table.replaceChildren(make("table", "", {}, make("caption", "", {}, `All heads, the largest ${y} first.`), make("thead", "", {}, head), body));
    this.markChosen();
  }

  private markChosen(): void {
    for (const button of this.table.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === this.state.head));
  }

  private headTable(): Table {
    const scalars = this.header.scalars.filter((scalar) => !scalar.classes);
    const columns = ["layer", "head", ...scalars.flatMap((scalar) => [scalarKey(scalar), `${scalarKey(scalar)} low`, `${scalarKey(scalar)} high`])];
    const rows = this.header.layers.flatMap((layer, i) =>
      this.header.heads.map((head, j) => [layer, head, ...scalars.flatMap((scalar) => [scalar.values[i]?.[j] ?? null, scalar.low?.[i]?.[j] ?? null, scalar.high?.[i]?.[j] ?? null])]),
    );
    return { caption: this.header.title, columns, rows } as Table;
  }

  private exampleTable(): Table {
    const look = this.look();
    const columns = ["group", "example", "activity", "query", "query token", "key", "key token", `weight (${this.state.lens})`];
    return { caption: `${this.header.title} · ${this.state.head}`, columns, rows: this.cards.flatMap((card) => card.rows(look)) } as Table;
  }

  private exampleSvg(): string {
    const look = this.look();
    const gap = 16;
    const width = Math.max(320, ...this.cards.map((card) => card.element.clientWidth));
    const columns = this.header.groups.map((group) => this.cards.map((card, index) => ({ card, index })).filter(({ card }) => card.example.group === group));
    const height = 60 + Math.max(0, ...columns.map((column) => column.reduce((sum, { card }) => sum + card.height() + 20 + gap, 0)));
    const svg = new Svg(columns.length * (width + gap) + gap, height, look.palette.background, `${this.header.title} · ${this.state.head}`);
    columns.forEach((column, place) => {
      const x = gap + place * (width + gap);
      const group = this.header.groups[place]!;
      svg.text(x, 28, `${this.state.head} · ${title(group)} · ${this.state.lens}`, { fill: look.palette.ink, "font-size": 14, "font-weight": 600 });
      let y = 40;
      for (const { card, index } of column) y += card.svg(svg, x, y, look, this.state.example === index ? this.state.token : -1) + gap;
    });
    return svg.toString();
  }

  private async png(): Promise<Blob> {
    forceRatio(2);
    this.draw();
    const canvas = this.scatter.canvas;
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [canvas.width, canvas.height + 56];
    const context = picture.getContext("2d")!;
    context.fillStyle = this.palette.background;
    context.fillRect(0, 0, picture.width, picture.height);
    context.fillStyle = this.palette.ink;
    context.font = `600 26px ${FONT}`;
    context.fillText(this.header.title, 24, 38, picture.width - 48);
    context.drawImage(canvas, 0, 56);
    forceRatio(null);
    this.draw();
    return new Promise((resolve, reject) => picture.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser made no picture"))), "image/png"));
  }

  private fillExport(): void {
    const name = (what: string, ending: string): string => `${`${this.header.model}-${what}`.replace(/[^\p{L}\p{N}._-]+/gu, "-")}.${ending}`;
    const text = (kind: string, content: string): Blob => new Blob([content], { type: kind });
    const items: [string, () => void][] = [
      ["Heads as CSV", () => download(name("heads", "csv"), text("text/csv", toCsv(this.headTable())))],
      ["Heads as SVG", () => download(name("heads", "svg"), text("image/svg+xml", this.scatter.svg(this.content(), this.palette, colorTable(this.theme_, false), this.header.title)))],
      ["Heads as PNG", () => void this.png().then((blob) => download(name("heads", "png"), blob))],
      ["Examples as CSV", () => download(name(this.state.head, "csv"), text("text/csv", toCsv(this.exampleTable())))],
      ["Examples as SVG", () => download(name(this.state.head, "svg"), text("image/svg+xml", this.exampleSvg()))],
      ["Copy the Python lines", () => void this.copy("The Python lines", this.header.python)],
      ["Copy the link", () => void this.copy("The link", location.href)],
    ];
    const buttons = items.map(([label, action]) =>
      makeButton(label, () => {
        this.exportMenu.open = false;
        action();
      }),
    );
    this.exportMenu.append(make("summary", "hs-button", { title: "Export (E)" }, "Export"), make("div", "hs-items", {}, ...buttons));
  }

  private async copy(what: string, text: string): Promise<void> {
    const verb = what.endsWith("s") ? "are" : "is";
    this.reading.textContent = (await copyText(text)) ? `${what} ${verb} in the clipboard.` : `${what} could not be copied: the browser did not allow it.`;
  }

  private makeAbout(): HTMLElement {
    const { header } = this;
    const list = make("dl", "hs-made");
    for (const [name, value] of header.made) list.append(make("dt", "", {}, name), make("dd", "", {}, value));
    const lens = header.activity.lens;
    const sampled = header.sample < header.examples ? `The median is that of ${count(header.sample, "example")}, drawn at random.` : "The median is that of all examples.";
    const texts = [
      `Examples are sorted by ${header.activity.name} (${lens}). ${sampled}`,
      `Of each row, the ${header.kept.keys} largest weights by size are kept, from ${header.kept.threshold} on, to ${header.unit / 2}; what is left out is stated for each map and row. Shading without a chosen token is from the whole map.`,
      "Intervals are those of the mean over examples (95 %).",
    ];
    return make("details", "hs-about", {}, make("summary", "", {}, "How this was made"), ...texts.map((line) => make("p", "", {}, line)), list);
  }

  private makeHelp(): HTMLDialogElement {
    const list = make("dl", "hs-keys");
    for (const [key, text] of KEYS) list.append(make("dt", "", {}, make("kbd", "", {}, key)), make("dd", "", {}, text));
    const dialog = make("dialog", "hs-help", { "aria-label": "Keyboard" }, make("h3", "", {}, "Keyboard"), list);
    dialog.append(makeButton("Close", () => dialog.close()));
    return dialog;
  }

  private makeSelect(label: string, onChange: (value: string) => void): { field: HTMLElement; select: HTMLSelectElement } {
    const select = make("select", "hs-select");
    select.addEventListener("change", () => onChange(select.value));
    return { field: make("label", "hs-field", {}, make("span", "hs-label", {}, label), select), select };
  }

  private makeCheck(label: string, onChange: (on: boolean) => void): { field: HTMLElement; box: HTMLInputElement } {
    const box = make("input", "", { type: "checkbox" });
    box.addEventListener("change", () => onChange(box.checked));
    return { field: make("label", "hs-field hs-check", {}, box, make("span", "", {}, label)), box };
  }

  private makeSwitch(host: HTMLElement, options: readonly [string, string][], onChange: (value: string) => void): void {
    const group = `hs-${Math.random().toString(36).slice(2)}`;
    for (const [value, label] of options) {
      const input = make("input", "", { type: "radio", name: group, value });
      input.addEventListener("change", () => onChange(value));
      host.append(make("label", "", {}, input, make("span", "", {}, label)));
    }
  }
}

/** The heading of a group of examples. */
function title(group: string): string {
  return GROUP_TITLES[group] ?? group;
}

/** A name in words: "offsets, offset −1" of "offsets offset=-1". */
export function pretty(name: string): string {
  return name.replaceAll("_", " ").replace(/ (\w+)=/g, ", $1 ").replace(/ -(?=\d)/g, " −");
}

function optionText(axis: Scalar): string {
  return axis.lens === null ? pretty(axis.name) : `${pretty(axis.name)} · ${axis.lens}`;
}

/** The title of an axis: what it is, its units, its lens. */
export function axisTitle(axis: Scalar): string {
  const unit = /\(([^)]*)\)$/.exec(axis.label)?.[1];
  const more = [unit, axis.lens].filter(Boolean).join(", ");
  return `${pretty(axis.name)}${more ? ` (${more})` : ""}`;
}

/** The same in words: what the number measures, where its name does not say it. */
function longTitle(axis: Scalar): string {
  const words = pretty(axis.label);
  const named = words.startsWith(pretty(axis.name)) ? words : `${pretty(axis.name)}: ${words.replace(/: -?\d+$/, "")}`;
  return axis.lens === null ? named : `${named}, ${axis.lens}`;
}
