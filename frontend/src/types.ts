/** The contract between Python and the browser, and between the viewer and its views. See README.md. */
import type { Viewer } from "./viewer";

export type { Viewer };

export type ViewName = "grid" | "head" | "compare" | "matrix" | "layers" | "models" | "result";
export type Codec = "sqrt8" | "float16" | "float32";
/** One number for each layer and head; null where there is none. */
export type Numbers = (number | null)[][];

export interface Source {
  header(): Promise<Header>;
  block(name: string): Promise<ArrayBuffer>;
  watch?(callback: () => void): () => void;
}

export interface Options {
  host?: "page" | "notebook" | "studio";
  /** Keep the state in the URL's fragment. */
  url?: boolean;
  initial?: Partial<State>;
  onState?(state: State): void;
  /** Keys that the host adds, for the help. */
  keys?: readonly [string, string][];
  /** Height of the picture in CSS pixels, where the host does not give one. */
  height?: number;
}

export interface Mounted {
  readonly state: State;
  set(change: Partial<State>): void;
  ready: Promise<void>;
  destroy(): void;
}

export interface Header {
  format: 1;
  title: string;
  made: [string, string][];
  sheets: Sheet[];
  comparisons: Comparison[];
  result: Result | null;
  messages: string[];
}

export interface Sheet {
  model: string;
  site: string;
  text: string;
  pair: string | null;
  layers: number[];
  heads: number[];
  queries: Tokens;
  keys: Tokens | null;
  visible: "all" | "causal" | "blocks";
  picture: Picture | null;
  lenses: LensHeader[];
  scalars: Scalar[];
  python: string;
  prediction: [string, number][] | null;
}

export interface Tokens {
  text: string[];
  special: number[];
  word: number[] | null;
}

export interface Picture {
  width: number;
  height: number;
  rows: number;
  columns: number;
  keyRow: number[];
  keyColumn: number[];
}

export interface LensHeader {
  name: string;
  quantity: string;
  signed: boolean;
  merged: boolean;
  codec: Codec;
  limit: number;
  scales: Numbers;
  thumbs: { rows: number; columns: number };
  stored: boolean[][] | null;
  graph: "edges" | "capacities" | null;
  note: string;
}

export interface Scalar {
  name: string;
  label: string;
  lens: string | null;
  values: Numbers;
  low: Numbers | null;
  high: Numbers | null;
  n: string | null;
  classes: string[] | null;
}

export interface Comparison {
  first: number;
  second: number;
  lens: string;
  name: "cosine";
  values: Numbers;
}

export interface Result {
  kind: string;
  lead: string;
  tables: ResultTable[];
  figures: { name: string; caption: string; block: string }[];
}

export interface ResultTable {
  name: string;
  caption: string;
  n: string;
  columns: string[];
  rows: (string | number | null)[][];
}

export interface State {
  view: ViewName;
  sheet: number;
  second: number;
  lens: string;
  other: string;
  layer: number;
  head: number;
  tokens: number[];
  side: "query" | "key";
  words: boolean;
  /** Whether maps of one unit share one color scale, side by side. */
  shared: boolean;
  special: boolean;
  start: number;
  count: number;
  scalar: string;
  /** Which heads are shown by the scalar, as `formatFilter` writes it; empty: all. */
  filter: string;
  sort: "layer" | "scalar";
  /** The label of the layer above which rollout and flow are shown; -1: the last one. */
  top: number;
  mass: number;
  theme: "auto" | "light" | "dark";
}

/** One token or merged word of a map as it is shown. `tokens` are the indices of the sheet's tokens it stands for. */
export interface Unit {
  text: string;
  tokens: number[];
  special: boolean;
}

/** The weights of one head, row after row; NaN marks masked cells. */
export interface MapData {
  rows: number;
  columns: number;
  weights: Float32Array;
  queries: Unit[];
  keys: Unit[];
  signed: boolean;
  /** Largest |weight| of the whole map, from the header; 0 where the map is empty. */
  scale: number;
  codec: Codec;
  /** Of each row, the sums of |weight| to keys that are shown, to hidden special keys, and to keys outside of the window; empty where nothing is hidden. */
  hidden: (readonly [number, number, number])[];
  /** Why this map is missing: pruned, NaN, not stored, or no token is left. `weights` are then all NaN. */
  missing: string | null;
}

/** Pictures of all heads of a lens, decoded on request. */
export interface Thumbs {
  rows: number;
  columns: number;
  /** Codes of a head's picture (sqrt8), by layer and head *index*; a view of the block, not a copy. */
  codes(layer: number, head: number): Uint8Array;
  /** Weights of a head's picture, by layer and head *index*. */
  weights(layer: number, head: number): Float32Array;
}

export interface Table {
  caption: string;
  columns: string[];
  rows: (string | number | null)[][];
}

/** A control of the toolbar. A view names those that change its picture. */
export type Control = "lens" | "other" | "layer" | "head" | "scalar" | "sort" | "side" | "words" | "shared" | "special" | "window" | "search" | "mass";

export interface View {
  name: ViewName;
  title: string;
  key: string;
  /** Controls of the toolbar that this view uses; without it, the lens only. */
  controls?: readonly Control[];
  available(viewer: Viewer): boolean;
  open(viewer: Viewer, element: HTMLElement): OpenView;
}

export interface OpenView {
  update(): void;
  table(): Promise<Table>;
  svg(): Promise<string>;
  python(): string;
  describe(): string;
  keydown?(event: KeyboardEvent): boolean;
  /** A key was released; the views that react while a key is held use it. */
  keyup?(event: KeyboardEvent): void;
  /** Which of several figures is exported. */
  figureName?(): string;
  /** The picture for the PNG export, if it is not simply all canvases of the view, top to bottom. */
  png?(): Promise<HTMLCanvasElement>;
  destroy(): void;
}
