/** The list of views, and the page around them: title, tabs, toolbar, reading, table, export and help. */
import { coalesce, make, makeButton } from "./dom";
import { copyText, download, fileName, toCsv, toPng } from "./exporting";
import { count as countOf, formatNumber, keepTogether } from "./format";
import { makeHelp } from "./help";
import { handleKey } from "./keyboard";
import { defaultState, parseFragment, toFragment } from "./state";
import { resolveTheme, watchTheme } from "./theme";
import { Toolbar } from "./toolbar";
import type { Header, Mounted, OpenView, Options, Sheet, Source, State, Table, View } from "./types";
import { Viewer } from "./viewer";
import { compareView } from "./views/compare";
import { gridView } from "./views/grid";
import { headView } from "./views/head";
import { layersView } from "./views/layers";
import { matrixView } from "./views/matrix";
import { modelsView } from "./views/models";
import { resultView } from "./views/result";

/** All views, in the order of their tabs. */
export const views: readonly View[] = [gridView, headView, compareView, matrixView, layersView, modelsView, resultView];

const TABLE_ROWS = 200;
const emptyHeader: Header = { format: 1, title: "", made: [], sheets: [], comparisons: [], result: null, messages: [] };
let mounts = 0;

/** Show a source in an element. */
export function mount(element: HTMLElement, source: Source, options: Options = {}): Mounted {
  const app = new App(element, source, options);
  const ready = app.load();
  ready.catch(() => {});
  return {
    get state(): State {
      return app.viewer.state;
    },
    set: (change) => app.set(change),
    ready,
    destroy: () => app.destroy(),
  };
}

/** One mounted viewer. */
class App {
  viewer: Viewer;
  readonly root: HTMLElement;
  private readonly id = `headscope-${++mounts}`;
  private readonly title: HTMLElement;
  private readonly facts = make("p", "hs-facts");
  private readonly messages = make("div", "hs-messages");
  private readonly tabs = make("div", "hs-tabs", { role: "tablist", "aria-label": "Views" });
  private readonly reading = make("p", "hs-reading");
  private readonly place = make("div", "hs-view", { id: `${this.id}-view`, role: "tabpanel" });
  private readonly tablePlace = make("div", "hs-table", { hidden: true, tabindex: 0, role: "region", "aria-label": "Table" });
  private readonly tableButton = makeButton("Table", () => this.toggleTable(), { "aria-pressed": "false", title: "The numbers that are drawn (T)" });
  private readonly themeButton = makeButton("◐", () => this.nextTheme(), {});
  private readonly exportMenu = make("details", "hs-menu");
  private readonly help: HTMLDialogElement;
  private readonly about = make("details", "hs-about");
  private readonly twin = make("p", "hs-hidden", { id: `${this.id}-twin` });
  private readonly live = make("p", "hs-hidden", { "aria-live": "polite" });
  private toolbar!: Toolbar;
  private open: { view: View; opened: OpenView } | null = null;
  private pending: Partial<State>;
  private waiting: (() => void)[] = [];
  private readonly endings: (() => void)[] = [];
  private width = 0;
  private changed = false;
  private readonly refresh = coalesce(() => this.draw());

  constructor(element: HTMLElement, private readonly source: Source, private readonly options: Options) {
    this.root = make("div", "headscope-viewer", { tabindex: -1, "data-host": options.host ?? "page", role: (options.host ?? "page") === "page" ? "main" : null });
    this.title = make(options.host === "page" ? "h1" : "h2", "hs-title");
    this.help = makeHelp(views, options.keys);
    if (options.height) this.root.style.setProperty("--hs-height", `${options.height}px`);
    this.pending = { ...options.initial, ...(options.url ? parseFragment(location.hash) : {}) };
    this.viewer = new Viewer(this.root, source, emptyHeader, { ...options, initial: this.pending });
    this.assemble();
    this.applyTheme();
    element.replaceChildren(this.root);
    this.listen();
  }

  private assemble(): void {
    this.toolbar = new Toolbar(this.viewer);
    this.fillExport();
    const helpButton = makeButton("?", () => this.help.showModal(), { "aria-label": "Keyboard help", title: "Keyboard (?)" });
    const actions = make("div", "hs-actions", {}, this.tableButton, this.exportMenu, this.themeButton, helpButton);
    this.root.append(
      make("header", "hs-top", {}, make("div", "hs-heading", {}, this.title, this.facts)),
      this.messages,
      make("div", "hs-bar", {}, this.tabs, actions),
      this.toolbar.element,
      this.reading,
      this.place,
      this.tablePlace,
      this.about,
      this.twin,
      this.live,
      this.help,
    );
    this.viewer.twinId = this.twin.id;
    this.viewer.onStatus = (text) => this.showReading(text);
    this.viewer.onAnnounce = (text) => void (this.live.textContent = text);
    this.viewer.onDrawn = () => this.afterDraw();
  }

  private listen(): void {
    const alone = this.options.host !== "notebook";
    const keys = (event: KeyboardEvent): void => {
      const inside = this.root.contains(event.target as Node) || (alone && event.target === document.body);
      if (inside) this.onKey(event);
    };
    const keyup = (event: KeyboardEvent): void => this.open?.opened.keyup?.(event);
    if (!alone) this.root.addEventListener("focusin", (event) => keepKeys(event.target as Element));
    document.addEventListener("keydown", keys);
    document.addEventListener("keyup", keyup);
    const observer = new ResizeObserver(([entry]) => {
      const width = Math.round(entry!.contentRect.width);
      if (width === this.width) return;
      this.width = width;
      this.refresh();
    });
    observer.observe(this.root);
    this.endings.push(
      () => document.removeEventListener("keydown", keys),
      () => document.removeEventListener("keyup", keyup),
      () => observer.disconnect(),
      () => this.refresh.cancel(),
      watchTheme(() => this.applyTheme()),
      this.viewer.onChange((before) => this.onChange(before)),
    );
    if (this.options.url) {
      const onHash = (): void => this.set({ ...defaultState(this.viewer.header), ...parseFragment(location.hash) });
      window.addEventListener("hashchange", onHash);
      this.endings.push(() => window.removeEventListener("hashchange", onHash));
    }
    const close = (event: Event): void => {
      if (this.exportMenu.open && !this.exportMenu.contains(event.target as Node)) this.exportMenu.open = false;
    };
    document.addEventListener("pointerdown", close);
    this.endings.push(() => document.removeEventListener("pointerdown", close));
    if (this.source.watch) this.endings.push(this.source.watch(() => void this.load()));
  }

  /** Read the header and show what is in it. */
  async load(): Promise<void> {
    try {
      const header = await this.source.header();
      const wanted = { ...defaultState(header), ...(this.viewer.header === emptyHeader ? {} : this.viewer.state), ...this.pending };
      this.pending = {};
      this.closeView(); // it may not describe what the new header holds
      this.viewer.replace(header);
      this.viewer.state = wanted;
      this.viewer.set({});
      this.viewer.state = this.withView(this.viewer.state);
      performance.mark("headscope:header");
      this.describeHeader();
      this.draw();
    } catch (error) {
      this.viewer.fail(error);
      throw error;
    }
  }

  /** The state with a view that this header has. */
  private withView(state: State): State {
    const known = this.available();
    const view = known.find((each) => each.name === state.view) ?? known[0];
    return view ? { ...state, view: view.name } : state;
  }

  private available(): View[] {
    return views.filter((view) => view.available(this.viewer));
  }

  set(change: Partial<State>): void {
    if (this.viewer.header === emptyHeader) this.pending = { ...this.pending, ...change };
    else this.viewer.set(change);
  }

  private onChange(before: State): void {
    this.viewer.state = this.withView(this.viewer.state);
    const { state } = this.viewer;
    if (state.theme !== before.theme) this.applyTheme();
    if (state.sheet !== before.sheet) this.describeHeader();
    this.changed = true;
    this.writeUrl(); // at once: a reload may come before the next draw
    this.showReading(null);
    this.refresh();
  }

  private draw(): void {
    if (this.viewer.header === emptyHeader || !this.root.isConnected) return;
    const { state } = this.viewer;
    const view = this.available().find((each) => each.name === state.view) ?? null;
    this.updateTabs(view);
    this.toolbar.update(view);
    if (!view) this.closeView();
    else if (this.open?.view !== view) {
      this.closeView();
      this.open = { view, opened: view.open(this.viewer, this.place) };
    }
    this.open?.opened.update();
    if (!this.changed) return;
    this.changed = false;
    this.options.onState?.(state);
  }

  private closeView(): void {
    this.open?.opened.destroy();
    this.open = null;
    this.place.replaceChildren();
  }

  private afterDraw(): void {
    this.showReading(null);
    const text = this.open?.opened.describe() ?? "";
    if (this.twin.textContent !== text) this.twin.textContent = text;
    for (const resolve of this.waiting.splice(0)) resolve();
    if (!this.tablePlace.hidden) void this.fillTable();
  }

  private showReading(text: string | null): void {
    const shown = keepTogether(text ?? this.open?.opened.describe() ?? "");
    if (this.reading.textContent !== shown) this.reading.textContent = shown;
  }

  private writeUrl(): void {
    if (!this.options.url) return;
    const fragment = toFragment(this.viewer.state, this.withView(defaultState(this.viewer.header)));
    try {
      history.replaceState(history.state, "", fragment ? `#${fragment}` : location.pathname + location.search);
    } catch {
      // a sandboxed frame has no history; the state is kept without it
    }
  }

  private describeHeader(): void {
    const { header, state } = this.viewer;
    const sheet = header.sheets[state.sheet];
    this.title.textContent = header.title;
    this.facts.textContent = sheet ? describeSheet(sheet) : "";
    this.messages.replaceChildren(...header.messages.map((text) => make("p", "", {}, text)));
    this.fillAbout(header, sheet);
  }

  private fillAbout(header: Header, sheet: Sheet | undefined): void {
    const list = make("dl", "hs-made");
    const rows = [...header.made];
    if (sheet?.text) rows.unshift(["text", sheet.pair ? `${sheet.text} ‖ ${sheet.pair}` : sheet.text]);
    for (const [name, value] of rows) list.append(make("dt", "", {}, name), make("dd", "", {}, value));
    this.about.replaceChildren(make("summary", "", {}, `About ${sheet ? (sheet.lenses.length ? "these maps" : "these numbers") : "this result"}`), list);
    this.about.hidden = !rows.length;
  }

  private updateTabs(current: View | null): void {
    const known = this.available();
    const names = known.map((view) => view.name).join();
    if (this.tabs.dataset["names"] !== names) {
      this.tabs.dataset["names"] = names;
      this.tabs.replaceChildren(...known.map((view) => this.makeTab(view)));
    }
    for (const tab of this.tabs.querySelectorAll<HTMLElement>("[role=tab]")) {
      const chosen = tab.dataset["view"] === current?.name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    this.place.setAttribute("aria-label", current?.title ?? "View");
  }

  private makeTab(view: View): HTMLElement {
    const tab = makeButton(view.title, () => this.viewer.set({ view: view.name }), {
      role: "tab",
      "aria-controls": this.place.id,
      "data-view": view.name,
      title: `${view.title} (${view.key})`,
    });
    tab.className = "hs-tab";
    tab.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const tabs = [...this.tabs.querySelectorAll<HTMLElement>("[role=tab]")];
      const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length]!;
      next.focus();
      next.click();
      event.preventDefault();
      event.stopPropagation();
    });
    return tab;
  }

  private onKey(event: KeyboardEvent): void {
    if (this.help.open) return;
    const handled = handleKey(event, {
      viewer: this.viewer,
      opened: this.open?.opened ?? null,
      views: this.available(),
      toggleTable: () => this.toggleTable(),
      openExport: () => this.openExport(),
      openHelp: () => this.help.showModal(),
      focusSearch: () => this.focusSearch(),
      shows: (control) => this.toolbar.shows(control),
    });
    if (handled) event.preventDefault();
  }

  private focusSearch(): void {
    if (this.toolbar.search.hidden) return;
    this.toolbar.search.focus();
    this.toolbar.search.select();
  }

  private openExport(): void {
    this.exportMenu.open = true;
    this.exportMenu.querySelector("button")?.focus();
  }

  private applyTheme(): void {
    const theme = resolveTheme(this.viewer.state.theme);
    const named = { auto: "automatic", light: "light", dark: "dark" }[this.viewer.state.theme];
    this.themeButton.title = `Colors: ${named}`;
    this.themeButton.setAttribute("aria-label", `Colors: ${named}; change`);
    if (this.root.dataset["theme"] === theme) return;
    this.root.dataset["theme"] = theme;
    this.viewer.theme = theme;
    this.refresh();
  }

  private nextTheme(): void {
    const dark = this.viewer.theme === "dark";
    const { theme } = this.viewer.state;
    this.viewer.set({ theme: theme === "auto" ? (dark ? "light" : "dark") : resolveTheme("auto") === theme ? "auto" : dark ? "light" : "auto" });
    this.applyTheme();
  }

  private toggleTable(): void {
    this.tablePlace.hidden = !this.tablePlace.hidden;
    this.tableButton.setAttribute("aria-pressed", String(!this.tablePlace.hidden));
    this.showReading(null);
    if (!this.tablePlace.hidden) void this.fillTable();
  }

  private async fillTable(): Promise<void> {
    try {
      const table = await this.open?.opened.table();
      if (table) this.tablePlace.replaceChildren(makeTable(table));
    } catch (error) {
      this.viewer.fail(error);
    }
  }

  private fillExport(): void {
    const items: [string, () => Promise<string>][] = [
      ["Picture (PNG)", async () => this.save("png", await toPng(this.viewer, this.view(), this.place, () => this.nextDraw()), this.view().figureName?.())],
      ["Vectors (SVG)", async () => this.save("svg", new Blob([await this.view().svg()], { type: "image/svg+xml" }), this.view().figureName?.())],
      ["Numbers (CSV)", async () => this.saveTable(await this.view().table())],
      ["Copy the Python lines", async () => this.copy(this.pythonLines(), "The Python lines are")],
      ["Copy a link", async () => this.copy(this.link(), "A link to this view is")],
    ];
    const buttons = items.map(([label, action]) => makeButton(label, () => void this.leave(action)));
    if (!this.options.url) buttons.pop();
    this.exportMenu.append(make("summary", "hs-button", { title: "Export (E)" }, "Export"), make("div", "hs-items", {}, ...buttons));
    this.exportMenu.addEventListener("keydown", (event) => {
      if (!this.exportMenu.open || !(event.key === "Escape" || event.key.startsWith("Arrow"))) return;
      if (event.key === "Escape") this.closeExport();
      else this.moveInExport(buttons, event.key);
      event.preventDefault();
      event.stopPropagation();
    });
  }

  private closeExport(): void {
    this.exportMenu.open = false;
    this.exportMenu.querySelector("summary")?.focus();
  }

  private moveInExport(buttons: readonly HTMLElement[], key: string): void {
    const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    if (step) buttons[at < 0 && step < 0 ? buttons.length - 1 : (at + step + buttons.length) % buttons.length]?.focus();
  }

  private async leave(action: () => Promise<string>): Promise<void> {
    this.closeExport();
    try {
      const said = await action();
      this.viewer.status(said);
      this.viewer.announce(said);
    } catch (error) {
      this.viewer.fail(error);
    }
  }

  private view(): OpenView {
    if (!this.open) throw new Error("no view is open");
    return this.open.opened;
  }

  private nextDraw(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      setTimeout(resolve, 4000);
    });
  }

  /** Save a file; `what` says what of several things it holds. */
  private async save(ending: string, content: Blob, what = ""): Promise<string> {
    const name = fileName(this.viewer, ending);
    download(name, content);
    return what ? `${name} was saved: ${what}` : `${name} was saved.`;
  }

  private saveTable(table: Table): Promise<string> {
    return this.save("csv", new Blob(["\ufeff", toCsv(table)], { type: "text/csv" }), table.caption);
  }

  private async copy(text: string, what: string): Promise<string> {
    return (await copyText(text)) ? `${what} in the clipboard.` : `The browser does not allow copying. Copy this: ${text}`;
  }

  private pythonLines(): string {
    const sheet = this.viewer.header.sheets[this.viewer.state.sheet];
    return `${sheet?.python.trimEnd() ?? "import headscope as hs"}\n${this.view().python()}\n`;
  }

  private link(): string {
    this.writeUrl();
    return location.href;
  }

  destroy(): void {
    this.closeView();
    for (const end of this.endings) end();
    this.root.remove();
  }
}

/** Keep the shortcuts of JupyterLab, such as X for cutting a cell, from an element that has the focus. */
function keepKeys(element: Element): void {
  element.setAttribute("data-lm-suppress-shortcuts", "true");
}

/** "6 layers × 12 heads · 14 tokens", and what the model predicts. */
export function describeSheet(sheet: Sheet): string {
  const parts = [`${countOf(sheet.layers.length, "layer")} × ${countOf(sheet.heads.length, "head")}`];
  const [queries, keys] = [sheet.queries.text.length, sheet.keys?.text.length];
  if (keys !== undefined) parts.push(`${queries} × ${countOf(keys, "token")}`);
  else if (queries) parts.push(countOf(queries, "token"));
  if (sheet.site !== "self") parts.push(`${sheet.site} attention`);
  if (sheet.prediction?.length) {
    const shown = sheet.prediction.slice(0, 3).map(([name, p]) => `${name} ${formatNumber(p, 2)}`);
    parts.push(`predicts ${shown.join(", ")}`);
  }
  return parts.join(" · ");
}

function makeTable(table: Table): HTMLElement {
  const shown = table.rows.slice(0, TABLE_ROWS);
  const cut = table.rows.length > shown.length;
  const caption = cut ? `${table.caption} First ${TABLE_ROWS} of ${table.rows.length.toLocaleString("en-US")} rows; the CSV has all.` : table.caption;
  const head = make("tr", "", {}, ...table.columns.map((name) => make("th", "", { scope: "col" }, name)));
  const rows = shown.map((row) =>
    make("tr", "", {}, ...row.map((cell) => make("td", typeof cell === "number" ? "hs-number" : "", {}, typeof cell === "number" ? formatNumber(cell) : (cell ?? "–")))),
  );
  return make("table", "", {}, make("caption", "", {}, caption), make("thead", "", {}, head), make("tbody", "", {}, ...rows));
}
