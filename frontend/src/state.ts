/** The state of a viewer: defaults, validation, and its place in the URL's fragment. */
import { isFilter } from "./heads";
import type { Header, Sheet, State, ViewName } from "./types";

export const viewNames: readonly ViewName[] = ["grid", "head", "compare", "matrix", "layers", "models", "result"];

/** How many tokens can be selected by a link or a search. */
export const MOST_TOKENS = 4096;

/** The state before anything was chosen. */
export function defaultState(header: Header): State {
  const sheet = header.sheets[0];
  return {
    view: sheet ? "grid" : "result",
    sheet: 0,
    second: header.sheets.length > 1 ? 1 : 0,
    lens: defaultLens(sheet),
    other: "",
    layer: sheet?.layers[0] ?? 0,
    head: sheet?.heads[0] ?? 0,
    tokens: [],
    side: "query",
    words: false,
    shared: true,
    special: true,
    start: 0,
    count: 0,
    scalar: defaultScalar(sheet),
    filter: "",
    sort: "layer",
    top: -1,
    mass: 0.8,
    theme: "auto",
  };
}

function defaultLens(sheet: Sheet | undefined): string {
  return sheet?.lenses[0]?.name ?? "";
}

/** The share of attention that reaches the output, where it differs between heads. */
function defaultScalar(sheet: Sheet | undefined): string {
  const share = sheet?.scalars.find((scalar) => scalar.name === "share");
  return share?.values.flat().some((value) => value !== null && value < 0.995) ? "share" : "";
}

/** The state with every field made valid for what the header holds: unknown names and labels give way to known ones. */
export function normalize(header: Header, state: State): State {
  const sheets = header.sheets.length;
  const sheet = clampIndex(state.sheet, sheets);
  const content = header.sheets[sheet];
  const longest = content ? Math.max(content.queries.text.length, (content.keys ?? content.queries).text.length) : 0;
  const start = clampIndex(state.start, longest);
  const side = state.side === "key" ? "key" : "query";
  const length = content ? (side === "key" ? (content.keys ?? content.queries) : content.queries).text.length : 0;
  return {
    view: viewNames.includes(state.view) ? state.view : "grid",
    sheet,
    second: clampIndex(state.second, sheets),
    lens: knownLens(content, state.lens) ?? defaultLens(content),
    other: knownLens(content, state.other) ?? "",
    layer: nearest(content?.layers ?? [], state.layer),
    head: nearest(content?.heads ?? [], state.head),
    tokens: [...new Set(state.tokens.filter((token) => Number.isInteger(token) && token >= 0 && token < length))],
    side,
    words: state.words === true,
    shared: state.shared !== false,
    special: state.special !== false,
    start,
    count: clampCount(state.count, longest - start),
    scalar: content?.scalars.some((scalar) => scalar.name === state.scalar) ? state.scalar : "",
    filter: content && isFilter(state.filter) ? state.filter : "",
    sort: state.sort === "scalar" ? "scalar" : "layer",
    top: content?.layers.includes(state.top) ? state.top : -1,
    mass: Number.isFinite(state.mass) ? Math.min(1, Math.max(0.05, state.mass)) : 0.8,
    theme: state.theme === "light" || state.theme === "dark" ? state.theme : "auto",
  };
}

function knownLens(sheet: Sheet | undefined, name: string): string | null {
  return sheet?.lenses.some((lens) => lens.name === name) ? name : null;
}

function clampIndex(index: number, length: number): number {
  return Number.isInteger(index) ? Math.max(0, Math.min(length - 1, index)) : 0;
}

function clampCount(count: number, left: number): number {
  return Number.isInteger(count) && count > 0 ? Math.max(1, Math.min(count, left)) : 0;
}

/** The label that is nearest to a number; the first of equally near ones. */
export function nearest(labels: readonly number[], label: number): number {
  if (!labels.length) return 0;
  if (!Number.isFinite(label)) return labels[0]!;
  return labels.reduce((best, other) => (Math.abs(other - label) < Math.abs(best - label) ? other : best));
}

/** The fields that a fragment names, as far as they can be read; `normalize` checks them. */
export function parseFragment(fragment: string): Partial<State> {
  const fields = new URLSearchParams(fragment.replace(/^#/, "").slice(0, 10 * MOST_TOKENS));
  const change: Record<string, unknown> = {};
  for (const [name, text] of fields) {
    const value = parseField(name, text);
    if (value !== undefined) change[name] = value;
  }
  return change as Partial<State>;
}

const texts = new Set(["view", "lens", "other", "side", "scalar", "filter", "sort", "theme"]);
const integers = new Set(["sheet", "second", "layer", "head", "start", "count", "top"]);

function parseField(name: string, text: string): unknown {
  if (texts.has(name)) return text;
  if (integers.has(name)) return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  if (name === "mass") return /^[01]?(\.\d{1,6})?$/.test(text) && text ? Number(text) : undefined;
  if (name === "words" || name === "special" || name === "shared") return text === "1" ? true : text === "0" ? false : undefined;
  if (name === "tokens") return text.split(",").filter((part) => /^\d{1,9}$/.test(part)).slice(0, MOST_TOKENS).map(Number);
  return undefined;
}

/** The fragment of a state, with the fields only that differ from the defaults. */
export function toFragment(state: State, defaults: State): string {
  const fields = new URLSearchParams();
  for (const name of Object.keys(defaults) as (keyof State)[]) {
    const text = formatField(state[name]);
    if (text !== formatField(defaults[name])) fields.set(name, text);
  }
  return fields.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%3D", "=");
}

function formatField(value: State[keyof State]): string {
  return typeof value === "boolean" ? (value ? "1" : "0") : Array.isArray(value) ? value.join(",") : String(value);
}
