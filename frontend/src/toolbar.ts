/** The controls above the picture. All of them are native; those that a view does not use are hidden. */
import { make, makeButton, setOptions } from "./dom";
import { longLabel, shortLabel } from "./heads";
import { otherLens } from "./lenses";
import { sheetName } from "./pairs";
import { MOST_TOKENS } from "./state";
import type { Control, Scalar, Sheet, State, View, Viewer } from "./types";

const WINDOWS = [8, 16, 32, 64, 128, 256, 512, 1024];

/** A labelled select whose choice goes into the state. */
function makeSelect(label: string, onChange: (value: string) => void): { field: HTMLElement; select: HTMLSelectElement } {
  const select = make("select", "hs-select");
  select.addEventListener("change", () => onChange(select.value));
  return { field: make("label", "hs-field", {}, make("span", "hs-label", {}, label), select), select };
}

function makeCheck(label: string, title: string, onChange: (checked: boolean) => void): { field: HTMLElement; box: HTMLInputElement } {
  const box = make("input", "", { type: "checkbox" });
  box.addEventListener("change", () => onChange(box.checked));
  return { field: make("label", "hs-field hs-check", { title }, box, make("span", "", {}, label)), box };
}

/** Controls of the state. */
export class Toolbar {
  readonly element = make("div", "hs-tools", { role: "group", "aria-label": "What is shown" });
  readonly search = make("input", "hs-search", { type: "search", placeholder: "find a token", "aria-label": "Search tokens" });
  private readonly fields = new Map<Control | "sheet", HTMLElement>();
  private readonly sheet = makeSelect("Maps", (value) => this.viewer.set({ sheet: Number(value) }));
  private readonly lens = makeSelect("Lens", (value) => this.viewer.set({ lens: value }));
  private readonly lensSwitch = make("div", "hs-switch", { role: "radiogroup", "aria-label": "Lens" });
  private readonly other = makeSelect("difference with", (value) => this.viewer.set({ other: value }));
  private readonly layer = makeSelect("Layer", (value) => this.viewer.set({ layer: Number(value) }));
  private readonly head = makeSelect("Head", (value) => this.viewer.set({ head: Number(value) }));
  private readonly scalar = makeSelect("Number", (value) => this.viewer.set({ scalar: value, ...(value ? {} : { sort: "layer" as const }) }));
  private readonly sort = makeSelect("Order", (value) => this.viewer.set({ sort: value as State["sort"] }));
  private readonly side = makeSelect("Tokens", (value) => this.viewer.set({ side: value as State["side"] }));
  private readonly words = makeCheck("words", "Merge the pieces of words: to a word the sum, from a word the mean (W)", (on) => this.viewer.set({ words: on }));
  private readonly shared = makeCheck("one scale", "Maps of one unit share their colors; without it, each has a scale of its own (C)", (on) => this.viewer.set({ shared: on }));
  private readonly special = makeCheck("special tokens", "Show tokens such as [CLS] (S)", (on) => this.viewer.set({ special: on }));
  private readonly count = makeSelect("Window", (value) => this.viewer.set(windowAround(this.viewer, Number(value))));
  private readonly range = make("output", "hs-range");
  private readonly mass = make("input", "", { type: "range", min: 0.05, max: 1, step: 0.05, "aria-label": "Share of each row's weight that links show" });
  private readonly massText = make("output", "hs-range");
  private readonly group = `hs-lens-${Math.random().toString(36).slice(2)}`;

  constructor(private readonly viewer: Viewer) {
    this.mass.addEventListener("input", () => viewer.set({ mass: Number(this.mass.value) }));
    this.search.addEventListener("input", () => this.find());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.find();
      if (event.key === "Escape") {
        this.search.value = "";
        viewer.root.focus({ preventScroll: true });
      }
    });
    const back = makeButton("‹", () => moveWindow(viewer, -1), { "aria-label": "Earlier tokens", title: "Earlier tokens ([)" });
    const forth = makeButton("›", () => moveWindow(viewer, 1), { "aria-label": "Later tokens", title: "Later tokens (])" });
    const items: [Control | "sheet", HTMLElement][] = [
      ["sheet", this.sheet.field],
      ["lens", make("div", "hs-field", {}, this.lensSwitch, this.lens.field)],
      ["other", this.other.field],
      ["layer", this.layer.field],
      ["head", this.head.field],
      ["scalar", this.scalar.field],
      ["sort", this.sort.field],
      ["side", this.side.field],
      ["mass", make("label", "hs-field", { title: "Of each row, the largest weights are drawn as links until this share of its total" }, make("span", "hs-label", {}, "Links"), this.mass, this.massText)],
      ["shared", this.shared.field],
      ["words", this.words.field],
      ["special", this.special.field],
      ["window", make("div", "hs-field", { role: "group", "aria-label": "Window of tokens" }, this.count.field, back, this.range, forth)],
      ["search", this.search],
    ];
    for (const [name, field] of items) {
      this.fields.set(name, field);
      this.element.append(field);
    }
  }

  /** Show the controls of a view with the values of the state. */
  update(view: View | null): void {
    const { viewer } = this;
    const sheets = viewer.header.sheets;
    const sheet = sheets[viewer.state.sheet];
    const used = new Set<Control | "sheet">(sheet ? (view?.controls ?? ["lens"]) : []);
    if (sheet && sheets.length > 1) used.add("sheet");
    for (const [name, field] of this.fields) field.hidden = !used.has(name) || !sheet || !this.useful(name, sheet);
    this.element.hidden = ![...this.fields.values()].some((field) => !field.hidden);
    if (sheet) this.fill(sheet);
  }

  /** Whether a control can be seen. */
  shows(control: Control): boolean {
    return this.fields.get(control)?.hidden === false;
  }

  private useful(name: Control | "sheet", sheet: Sheet): boolean {
    const { state } = this.viewer;
    const longest = Math.max(sheet.queries.text.length, (sheet.keys ?? sheet.queries).text.length);
    if (name === "lens") return sheet.lenses.length > 1 && (state.view !== "matrix" || haveLenses(sheet.scalars, state.scalar));
    if (name === "other") return sheet.lenses.filter((lens) => !lens.merged).length > 2;
    if (name === "head") return sheet.heads.length > 1 && !sheet.lenses.find((lens) => lens.name === state.lens)?.merged;
    if (name === "layer") return sheet.layers.length > 1;
    if (name === "scalar") return sheet.scalars.length > 0;
    if (name === "sort") return state.scalar !== "";
    if (name === "words") return [sheet.queries, sheet.keys ?? sheet.queries].some(isSplit);
    if (name === "special") return sheet.queries.special.length + (sheet.keys?.special.length ?? 0) > 0;
    if (name === "window") return longest > 24;
    if (name === "search") return longest > 12;
    return true;
  }

  private fill(sheet: Sheet): void {
    const { state, header } = this.viewer;
    setOptions(this.sheet.select, header.sheets.map((_, index) => [String(index), sheetName(header, index)]), String(state.sheet));
    this.fillLenses(sheet);
    const plain = sheet.lenses.filter((lens) => !lens.merged).map((lens) => [lens.name, lens.name] as const);
    setOptions(this.other.select, plain.filter(([name]) => name !== state.lens), otherLens(this.viewer));
    setOptions(this.layer.select, labels(sheet.layers), String(state.layer));
    setOptions(this.head.select, labels(sheet.heads), String(state.head));
    const scalars = this.viewer.scalarNames().map((name) => this.viewer.scalar(name)!).filter((scalar) => this.viewer.fits(scalar));
    const names = scalars.map((scalar) => [scalar.name, optionLabel(scalar, state.lens)] as const);
    setOptions(this.scalar.select, [["", "none"], ...names], scalars.some((scalar) => scalar.name === state.scalar) ? state.scalar : "");
    setOptions(this.sort.select, [["layer", "by layer"], ["scalar", "by the number"]], state.sort);
    setOptions(this.side.select, [["query", "attend to"], ["key", "are attended to by"]], state.side);
    this.shared.box.checked = state.shared;
    this.words.box.checked = state.words;
    this.special.box.checked = state.special;
    this.mass.value = String(state.mass);
    this.massText.value = `${Math.round(100 * state.mass)} %`;
    this.fillWindow(sheet);
  }

  private fillLenses(sheet: Sheet): void {
    const { state } = this.viewer;
    const names = sheet.lenses.map((lens) => lens.name);
    const many = names.length > 5 || names.join("").length > 44;
    this.lens.field.hidden = !many;
    this.lensSwitch.hidden = many;
    setOptions(this.lens.select, names.map((name) => [name, name]), state.lens);
    if (this.lensSwitch.dataset["names"] !== JSON.stringify(names)) {
      this.lensSwitch.dataset["names"] = JSON.stringify(names);
      this.lensSwitch.replaceChildren(...sheet.lenses.map((lens) => this.makeRadio(lens.name, lens.quantity)));
    }
    for (const radio of this.lensSwitch.querySelectorAll("input")) radio.checked = radio.value === state.lens;
  }

  private makeRadio(name: string, quantity: string): HTMLElement {
    const radio = make("input", "", { type: "radio", name: this.group, value: name });
    radio.addEventListener("change", () => this.viewer.set({ lens: name }));
    return make("label", "", { title: quantity }, radio, make("span", "", {}, name));
  }

  private fillWindow(sheet: Sheet): void {
    const { state } = this.viewer;
    const longest = Math.max(sheet.queries.text.length, (sheet.keys ?? sheet.queries).text.length);
    const sizes = new Set([...WINDOWS.filter((size) => size < longest), ...(state.count ? [state.count] : [])]);
    const options = [...sizes].sort((a, b) => a - b).map((size) => [String(size), `${size} tokens`] as const);
    setOptions(this.count.select, [["0", "all"], ...options], String(state.count));
    const last = state.count ? Math.min(longest, state.start + state.count) : longest;
    this.range.value = `${state.count ? state.start : 0}–${last - 1} of ${longest}`;
  }

  /** Select all tokens that contain what is searched for, and move the window to the first. */
  private find(): void {
    const { viewer } = this;
    const wanted = this.search.value.trim().toLowerCase();
    if (!wanted) return viewer.set({ tokens: [] });
    const texts = viewer.tokens(viewer.state.side).text;
    const found = texts.flatMap((text, index) => (text.toLowerCase().includes(wanted) ? [index] : []));
    const cut = found.length > MOST_TOKENS ? ` The first ${MOST_TOKENS} are selected.` : "";
    viewer.announce(found.length ? `${found.length} of ${texts.length} tokens contain ${wanted}.${cut}` : `No token contains ${wanted}.`);
    if (!found.length) return viewer.status(`No token contains “${wanted}”.`);
    viewer.status(null);
    const { start, count } = viewer.state;
    const outside = count > 0 && (found[0]! < start || found[0]! >= start + count);
    viewer.set({ tokens: found.slice(0, MOST_TOKENS), ...(outside ? { start: Math.max(0, found[0]! - (count >> 1)) } : {}) });
  }
}

function isSplit(tokens: { word: number[] | null }): boolean {
  const words = (tokens.word ?? []).filter((word) => word >= 0);
  return new Set(words).size < words.length;
}

/** Whether there is a number of this name, or of the first where none is chosen, for several lenses. */
function haveLenses(scalars: readonly Scalar[], chosen: string): boolean {
  const name = chosen || scalars[0]?.name;
  return scalars.filter((scalar) => scalar.name === name).length > 1;
}

/** The label of a number, short enough for a select; its lens where it is not the chosen one. */
function optionLabel(scalar: Scalar, lens: string): string {
  const long = longLabel(scalar, scalar.lens !== lens);
  return long.length > 40 ? longLabel({ ...scalar, label: shortLabel(scalar) }, scalar.lens !== lens) : long;
}

function labels(numbers: readonly number[]): (readonly [string, string])[] {
  return numbers.map((number) => [String(number), String(number)] as const);
}

/** A window of `count` tokens around the selected token, or where the window is now. */
export function windowAround(viewer: Viewer, count: number): Partial<State> {
  const { tokens, start, count: before } = viewer.state;
  if (count <= 0) return { start: 0, count: 0 };
  const longest = Math.max(viewer.tokens("query").text.length, viewer.tokens("key").text.length);
  const middle = tokens[0] ?? (before ? start + before / 2 : count / 2);
  return { start: Math.max(0, Math.min(longest - count, Math.round(middle - count / 2))), count };
}

/** Move the window by half of its length. */
export function moveWindow(viewer: Viewer, direction: number): void {
  const { start, count } = viewer.state;
  const longest = Math.max(viewer.tokens("query").text.length, viewer.tokens("key").text.length);
  const size = count || Math.min(longest, 64);
  const next = count ? start + direction * Math.max(1, size >> 1) : direction > 0 ? 0 : longest - size;
  viewer.set({ start: Math.max(0, Math.min(longest - size, next)), count: size });
}

/** Halve or double the window. */
export function zoomWindow(viewer: Viewer, closer: boolean): void {
  const longest = Math.max(viewer.tokens("query").text.length, viewer.tokens("key").text.length);
  const size = viewer.state.count || longest;
  const next = closer ? Math.max(4, size >> 1) : size * 2;
  viewer.set(windowAround(viewer, next >= longest ? 0 : next));
}
