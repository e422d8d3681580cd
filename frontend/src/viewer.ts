/**
 * What the views share: the header, the state, decoded maps, colors, and a line to say things.
 *
 * Layers and heads are *labels* everywhere here, as in the state; `layerIndex` and `headIndex` give their indices.
 * Sheets are indices, lenses are names. A merged lens has one map per layer: its head is ignored.
 */
import { ByteCache } from "./cache";
import { type ColorTable, colorTable, type Palette, palettes, type Theme } from "./colors";
import { decode, float16 } from "./decode";
import { tellMeasured } from "./heads";
import { defaultState, normalize } from "./state";
import type { Header, LensHeader, MapData, Options, Scalar, Sheet, Source, State, Thumbs, Tokens } from "./types";
import { allUnits, reduceMap } from "./units";

const MAP_BYTES = 96e6;
const SMALL_BYTES = 48e6;
const PAUSE = 350; // milliseconds

/** One number of a head with its interval, as far as it has one. */
export interface HeadValue {
  value: number | null;
  low: number | null;
  high: number | null;
}

/** A viewer's data and state. The page around it (toolbar, export, help) is made by `app.ts`, which listens. */
export class Viewer {
  header: Header;
  state: State;
  /** The theme that is drawn: "auto" is resolved. */
  theme: Theme = "light";
  /** Set by the app: shows a sentence in place of the reading, until null is given. */
  onStatus: (text: string | null) => void = () => {};
  /** Set by the app: speaks a sentence to screen readers. */
  onAnnounce: (text: string) => void = () => {};
  /** Set by the app: the id of the text twin, for `aria-describedby` of every canvas. */
  twinId = "";
  /** Set by the app: a view finished a draw. */
  onDrawn: () => void = () => {};
  private spoken = "";
  private pause: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<(before: State) => void>();
  private readonly maps = new ByteCache<Promise<MapData>>(MAP_BYTES);
  private readonly reduced = new ByteCache<Promise<MapData>>(SMALL_BYTES);
  private readonly others = new ByteCache<Promise<unknown>>(SMALL_BYTES);

  constructor(
    /** The element with the class `headscope-viewer`. */
    readonly root: HTMLElement,
    readonly source: Source,
    header: Header,
    readonly options: Options,
  ) {
    this.header = header;
    this.state = normalize(header, { ...defaultState(header), ...options.initial });
  }

  /** Change the state; views are asked to update where anything really changed. */
  set(change: Partial<State>): void {
    const before = this.state;
    const wanted = { ...before, ...change };
    if (change.sheet !== undefined && change.sheet !== before.sheet && change.tokens === undefined) wanted.tokens = [];
    const crossed = change.side !== undefined && change.side !== before.side && this.header.sheets[before.sheet]?.keys;
    if (crossed && change.tokens === undefined) wanted.tokens = [];
    const after = normalize(this.header, wanted);
    if (change.filter === undefined && after.filter && this.filtered(after) !== this.filtered(before)) after.filter = "";
    if (JSON.stringify(after) === JSON.stringify(before)) return;
    this.state = after;
    for (const listener of [...this.listeners]) listener(before);
  }

  /** The number that a filter is of. */
  private filtered({ sheet, scalar, lens }: State): string {
    return [sheet, scalar, this.scalar(scalar, lens, sheet)?.lens].join("|");
  }

  /** Call a function after every change of the state; returns a function that ends this. */
  onChange(listener: (before: State) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The content was replaced: forget all arrays. */
  replace(header: Header): void {
    this.header = { ...header, sheets: header.sheets.map((sheet) => ({ ...sheet, scalars: tellMeasured(sheet.scalars) })) };
    for (const cache of [this.maps, this.reduced, this.others]) cache.clear();
    this.state = normalize(this.header, this.state);
  }

  /** The chosen sheet, or the one of an index. */
  sheet(index: number = this.state.sheet): Sheet {
    const sheet = this.header.sheets[index];
    if (!sheet) throw new Error(`There is no sheet ${index}: the header has ${this.header.sheets.length}.`);
    return sheet;
  }

  /** The chosen lens of a sheet, or the one of a name; the first where the name is unknown. */
  lens(name: string = this.state.lens, sheet: number = this.state.sheet): LensHeader {
    const lens = this.sheet(sheet).lenses[this.lensIndex(name, sheet)];
    if (!lens) throw new Error(`Sheet ${sheet} has no lens.`);
    return lens;
  }

  lensIndex(name: string = this.state.lens, sheet: number = this.state.sheet): number {
    return Math.max(0, this.sheet(sheet).lenses.findIndex((lens) => lens.name === name));
  }

  layerIndex(label: number = this.state.layer, sheet: number = this.state.sheet): number {
    return Math.max(0, this.sheet(sheet).layers.indexOf(label));
  }

  headIndex(label: number = this.state.head, sheet: number = this.state.sheet): number {
    return Math.max(0, this.sheet(sheet).heads.indexOf(label));
  }

  /** Tokens of a side of a sheet. */
  tokens(side: "query" | "key", sheet: number = this.state.sheet): Tokens {
    const content = this.sheet(sheet);
    return side === "key" ? (content.keys ?? content.queries) : content.queries;
  }

  /** The name of a head as it is written: L3H4, or "layer 3" under a lens with one map per layer. */
  headName(layer = this.state.layer, head = this.state.head, lens = this.state.lens, sheet = this.state.sheet): string {
    return this.lens(lens, sheet).merged ? `layer ${layer}` : `L${layer}H${head}`;
  }

  /** A map as it is shown: words merged, special tokens hidden, the window applied, by the state. */
  map(sheet: number, lens: string, layer: number, head: number): Promise<MapData> {
    const { words, special, start, count } = this.state;
    if (!words && special && !count) return this.rawMap(sheet, lens, layer, head);
    const key = [sheet, lens, layer, head, words, special, start, count].join("|");
    return remember(this.reduced, key, async () => {
      const raw = await this.rawMap(sheet, lens, layer, head);
      return reduceMap(raw, this.sheet(sheet), { words, special, start, count });
    }, 4 * 256 * 256);
  }

  /** A map of all tokens. Its weights are shared by all who ask: do not change them. */
  rawMap(sheet: number, lens: string, layer: number, head: number): Promise<MapData> {
    const content = this.sheet(sheet);
    const bytes = 4 * content.queries.text.length * this.tokens("key", sheet).text.length;
    return remember(this.maps, [sheet, lens, layer, head].join("|"), () => this.readMap(sheet, lens, layer, head), bytes);
  }

  private async readMap(sheet: number, name: string, layer: number, head: number): Promise<MapData> {
    const lens = this.lens(name, sheet);
    const [row, column] = [this.layerIndex(layer, sheet), lens.merged ? 0 : this.headIndex(head, sheet)];
    const [queries, keys] = [this.tokens("query", sheet), this.tokens("key", sheet)];
    const shape = { rows: queries.text.length, columns: keys.text.length };
    const scale = lens.scales[row]?.[column] ?? null;
    const missing = whyMissing(lens, row, column, scale, this.headName(layer, head, name, sheet));
    const map: MapData = {
      ...shape,
      weights: new Float32Array(0),
      queries: allUnits(queries, false),
      keys: allUnits(keys, false),
      signed: lens.signed,
      scale: scale ?? 0,
      codec: lens.codec,
      hidden: [],
      missing,
    };
    if (missing) return { ...map, weights: new Float32Array(shape.rows * shape.columns).fill(NaN) };
    const block = await this.source.block(`${sheet}/${this.lensIndex(name, sheet)}/map/${row}/${column}`);
    const weights = decode(block, lens.codec, lens.signed, scale ?? 0).slice();
    const visible = await this.visible(sheet, layer);
    if (visible) for (let i = 0; i < weights.length; i++) if (!visible[i]) weights[i] = NaN;
    return { ...map, weights };
  }

  /** Which keys a query of a layer can see (1) or not (0), query × key; null: all. */
  async visible(sheet: number, layer: number): Promise<Uint8Array | null> {
    const content = this.sheet(sheet);
    if (content.visible === "all") return null;
    const [rows, columns] = [content.queries.text.length, this.tokens("key", sheet).text.length];
    if (content.visible === "causal") return remember(this.others, `causal|${sheet}`, async () => causal(rows, columns), rows * columns);
    const row = this.layerIndex(layer, sheet);
    return remember(
      this.others,
      `visible|${sheet}|${row}`,
      async () => new Uint8Array(await this.source.block(`${sheet}/visible/${row}`)),
      rows * columns,
    );
  }

  /** Small pictures of all heads of a lens. */
  thumbs(sheet: number, name: string): Promise<Thumbs> {
    const lens = this.lens(name, sheet);
    const { rows, columns } = lens.thumbs;
    const heads = lens.merged ? 1 : this.sheet(sheet).heads.length;
    const bytes = this.sheet(sheet).layers.length * heads * rows * columns;
    return remember(this.others, `thumbs|${sheet}|${name}`, async () => {
      const block = await this.source.block(`${sheet}/${this.lensIndex(name, sheet)}/thumbs`);
      const at = (layer: number, head: number): number => (layer * heads + (lens.merged ? 0 : head)) * rows * columns;
      return {
        rows,
        columns,
        codes: (layer: number, head: number) => new Uint8Array(block, at(layer, head), rows * columns),
        weights: (layer: number, head: number) =>
          decode(block, "sqrt8", lens.signed, lens.scales[layer]?.[lens.merged ? 0 : head] ?? 0, at(layer, head), rows * columns),
      };
    }, bytes);
  }

  /** Edges or capacities of a layer of rollout or flow: query × key of all tokens. `layer` is a label. */
  graph(sheet: number, lens: string, layer: number): Promise<Float32Array> {
    const name = `${sheet}/${this.lensIndex(lens, sheet)}/graph/${this.layerIndex(layer, sheet)}`;
    const bytes = 4 * this.tokens("query", sheet).text.length * this.tokens("key", sheet).text.length;
    return remember(this.others, name, async () => float16(await this.source.block(name)), bytes);
  }

  /** What a vision model saw: RGB bytes, row after row. */
  pixels(sheet: number = this.state.sheet): Promise<Uint8Array> {
    const { width, height } = this.sheet(sheet).picture!;
    return remember(this.others, `picture|${sheet}`, async () => new Uint8Array(await this.source.block(`${sheet}/picture`)), 3 * width * height);
  }

  /** The names of all scalars of a sheet, each once; the same statistic of several lenses has one name. */
  scalarNames(sheet: number = this.state.sheet): string[] {
    return [...new Set(this.sheet(sheet).scalars.map((scalar) => scalar.name))];
  }

  /** The chosen scalar, or the one of a name: that of the lens if there is one, else that of no lens, else any. */
  scalar(name: string = this.state.scalar, lens: string = this.state.lens, sheet: number = this.state.sheet): Scalar | null {
    const found = this.sheet(sheet).scalars.filter((scalar) => scalar.name === name);
    return found.find((scalar) => scalar.lens === lens) ?? found.find((scalar) => scalar.lens === null) ?? found[0] ?? null;
  }

  /** Whether a scalar has a number for each map of the lens: for each head, or for each layer. */
  fits(scalar: Scalar): boolean {
    const { lenses, heads } = this.sheet();
    return scalar.values[0]?.length === (lenses[this.lensIndex()]?.merged ? 1 : heads.length);
  }

  /** A scalar's number of a head, and its interval; of a scalar with one number for each layer, that of the layer. */
  value(scalar: Scalar, layer: number, head: number, sheet: number = this.state.sheet): HeadValue {
    const [row, column] = [this.layerIndex(layer, sheet), scalar.values[0]?.length === 1 ? 0 : this.headIndex(head, sheet)];
    const at = (numbers: Scalar["low"]): number | null => numbers?.[row]?.[column] ?? null;
    return { value: at(scalar.values), low: at(scalar.low), high: at(scalar.high) };
  }

  /** Colors by role of the theme that is drawn. */
  get palette(): Palette {
    return palettes[this.theme];
  }

  /** Colors of weights in the theme that is drawn. */
  colors(signed: boolean): ColorTable {
    return colorTable(this.theme, signed);
  }

  /** Show a sentence in the reading's place while the pointer is on something; null ends it. */
  status(text: string | null): void {
    this.onStatus(text);
  }

  /** Say a sentence to screen readers. */
  announce(text: string): void {
    clearTimeout(this.pause);
    this.onAnnounce(text);
  }

  /** Say what a picture shows, once it has not changed for a moment; what is shown first is not said. */
  speak(text: string): void {
    const before = this.spoken;
    this.spoken = text;
    if (text === before) return;
    clearTimeout(this.pause);
    if (before) this.pause = setTimeout(() => this.announce(text), PAUSE);
  }

  /** Show what went wrong where the reading is. */
  fail(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    console.error(error);
    this.onStatus(`This could not be drawn: ${text}`);
  }

  /** A view tells that its picture is complete; the reading is written again. */
  drawn(detail: Record<string, unknown> = {}): void {
    performance.mark("headscope:view", { detail: { view: this.state.view, ...detail } });
    this.onDrawn();
  }
}

function whyMissing(lens: LensHeader, row: number, column: number, scale: number | null, name: string): string | null {
  if (scale === null) return `${name} has no map: it was pruned, or its attention is not a number.`;
  if (lens.stored && !lens.stored[row]?.[column]) return `The full map of ${name} is not stored here; its small picture is in the grid.`;
  return null;
}

function causal(rows: number, columns: number): Uint8Array {
  const cells = new Uint8Array(rows * columns);
  for (let row = 0; row < rows; row++) cells.fill(1, row * columns, row * columns + Math.min(columns, row + 1 + columns - rows));
  return cells;
}

/** The cached promise of a key, or a new one; failures are not kept. */
function remember<T>(cache: ByteCache<Promise<unknown>>, key: string, make: () => Promise<T>, bytes: number): Promise<T> {
  const known = cache.get(key) as Promise<T> | undefined;
  if (known) return known;
  const made = make();
  cache.set(key, made, bytes);
  made.catch(() => cache.delete(key));
  return made;
}
