/** What an atlas holds; written by headscope/head_atlas/folder.py. */
import type { Scalar } from "../types";

export interface AtlasHeader {
  format: 1;
  title: string;
  model: string;
  site: string;
  made: [string, string][];
  layers: number[];
  heads: number[];
  /** Maps of examples come in this order. */
  lenses: AtlasLens[];
  scalars: Scalar[];
  activity: { name: string; lens: string };
  /** Examples of the corpus, and how many of them the median was found among. */
  examples: number;
  sample: number;
  groups: string[];
  kept: { keys: number; threshold: number };
  /** Stored weights are whole multiples of this. */
  unit: number;
  /** Number of examples by the name of the head, such as L3H7, which is also that of its file. */
  files: Record<string, number>;
  python: string;
}

export interface AtlasLens {
  name: string;
  quantity: string;
  signed: boolean;
}

/** The file of one head. */
export interface HeadFile {
  layer: number;
  head: number;
  examples: AtlasExample[];
}

export interface AtlasExample {
  group: string;
  position: number;
  activity: number;
  /** Share of the sampled examples whose activity is smaller. */
  above: number;
  id: string;
  label?: number | null;
  label_name?: string | null;
  queries: AtlasTokens;
  keys: AtlasTokens | null;
  maps: (StoredMap | null)[];
}

export interface AtlasTokens {
  text: string[];
  special: number[];
}

/** The largest weights of each row by size, row after row. */
export interface StoredMap {
  counts: number[];
  keys: number[];
  weights: number[];
  /** Sum of the absolute weights of each row that were not kept. */
  left: number[];
  /** Mean weight that each key gets over all rows, from the whole map. */
  received: number[];
  /** Share of the map's absolute weight that was not kept. */
  leftShare: number;
}

export interface AtlasState {
  x: string;
  y: string;
  logX: boolean;
  logY: boolean;
  /** The chosen head, such as L3H7; "" = none. */
  head: string;
  lens: string;
  side: "to" | "from";
  /** The chosen token: index of the example, and of the token; -1 = none. */
  example: number;
  token: number;
  theme: "auto" | "light" | "dark";
}
