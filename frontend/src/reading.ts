/** Sentences about one map: what a picture shows, in words. */
import { count, formatNumber, formatPercent, joinWords, quote } from "./format";
import type { MapData, Scalar, Viewer } from "./types";
import { hiddenShares } from "./units";

/** Numbers that differ by less than this share are said to tie: what half precision cannot tell apart. */
const TIE = 1e-3;

/** "“[SEP]” 0.45, “.” 0.10 and “is” 0.08"; where more than three have a place among them, how many tie. */
export function nameLargest(weights: Float32Array, nameOf: (index: number) => string, digits = 2, most = 3): string {
  const order = [...weights.keys()].filter((index) => Math.abs(weights[index]!) > 0);
  order.sort((a, b) => Math.abs(weights[b]!) - Math.abs(weights[a]!) || a - b);
  const ties = (a: number, b: number): boolean => Math.abs(weights[a]! - weights[b]!) <= TIE * Math.abs(weights[a]!);
  const last = order[most - 1];
  const cut = order[most] !== undefined && ties(last!, order[most]!) ? order.filter((index) => ties(last!, index)) : [];
  const named = order.slice(0, most).filter((index) => !cut.includes(index));
  const words = named.map((index) => `${nameOf(index)} ${formatNumber(weights[index]!, digits)}`);
  if (!cut.length) return joinWords(words);
  const many = named.length ? count(cut.length, "token") : cut.length === weights.length ? `all ${count(cut.length, "token")}` : `${cut.length} of ${count(weights.length, "token")}`;
  return joinWords([...words, `${many}, which tie at ${formatNumber(weights[cut[0]!]!, digits)}`]);
}

/** The summed weights from some rows to each key, or to some columns from each query; NaN where all are masked. */
export function sumChosen(map: MapData, weights: Float32Array, chosen: readonly number[], side: "query" | "key"): Float32Array {
  const length = side === "query" ? map.columns : map.rows;
  const total = new Float32Array(length).fill(NaN);
  for (const index of chosen)
    for (let i = 0; i < length; i++) {
      const weight = side === "query" ? weights[index * map.columns + i]! : weights[i * map.columns + index]!;
      if (weight === weight) total[i] = (total[i] === total[i] ? total[i]! : 0) + weight;
    }
  return total;
}

/** "“career” attends to “footballer” 0.31, “.” 0.22 and “[SEP]” 0.10."; of a difference, from and to which it is largest. */
export function readChosen(map: MapData, weights: Float32Array, chosen: readonly number[], side: "query" | "key", difference = false): string {
  const own = side === "query" ? map.queries : map.keys;
  const others = side === "query" ? map.keys : map.queries;
  const sums = sumChosen(map, weights, chosen, side);
  const top = nameLargest(sums, (index) => quote(others[index]!.text));
  const shown = chosen.slice(0, 4).map((index) => quote(own[index]!.text));
  const names = chosen.length > 4 ? `${shown.join(", ")} and ${chosen.length - 4} more` : joinWords(shown);
  if (difference) return readDifferences(names, top, chosen.length > 1, side);
  if (!top) return `${names} ${chosen.length > 1 ? "have" : "has"} no weight here.`;
  const verb = side === "query" ? (chosen.length > 1 ? "together attend to" : "attends to") : chosen.length > 1 ? "together are attended to by" : "is attended to by";
  return `${names} ${verb} ${top}.`;
}

/** "the largest differences from “career” are to “[SEP]” −0.31 and “.” 0.22." */
function readDifferences(names: string, top: string, several: boolean, side: "query" | "key"): string {
  const [near, far] = side === "query" ? ["from", "to"] : ["to", "from"];
  if (!top) return `there is no difference ${near} ${names}.`;
  return `the largest ${several ? "summed " : ""}differences ${near} ${names} are ${far} ${top}.`;
}

/** "the tokens shown attend on average most to “[SEP]” 0.45, “.” 0.10 and “is” 0.08." */
export function readMeans(map: MapData, means: Float32Array, difference = false): string {
  const top = nameLargest(means, (index) => quote(map.keys[index]!.text));
  if (!top) return difference ? "there is no difference." : "all weights are zero.";
  return difference ? `averaged over the tokens shown, the largest differences are to ${top}.` : `the tokens shown attend on average most to ${top}.`;
}

/** The share of attention that reaches the output by the lens that is shown, else by the plain effective one. */
export function findShare(scalars: readonly Scalar[], lens: string): Scalar | null {
  const shares = scalars.filter((scalar) => scalar.name === "share" && scalar.n === null);
  return shares.find((scalar) => scalar.lens === lens) ?? shares.find((scalar) => scalar.lens === "effective") ?? null;
}

/** What share of a head's attention reaches the output, where the sheet knows it. */
export function readShare(viewer: Viewer): string {
  const { layer, head, lens } = viewer.state;
  if (viewer.lens().merged || !(lens.startsWith("effective") || lens === "raw")) return "";
  const scalar = findShare(viewer.sheet().scalars, lens);
  const value = scalar ? viewer.value(scalar, layer, head).value : null;
  if (value === null) return "";
  const by = scalar!.lens === lens ? "" : ` (${scalar!.lens})`;
  if (value > 0.9995) return `All of this head's attention reaches the output${by}.`;
  return `${formatPercent(value)} of this head's attention, by norm, reaches the output${by}.`;
}

/** What is hidden, and how much weight of the chosen rows, or of all that are shown, goes there; `name` is that of the map where there are several. */
export function readHidden(map: MapData, { name = "", rows = [] }: { name?: string; rows?: readonly number[] } = {}): string {
  const { special, outside } = hiddenShares(map, rows);
  const goes = `of the weight of ${rows.length ? (rows.length > 1 ? "these rows" : "this row") : "the rows shown"} goes`;
  const parts = [];
  if (special > 0) parts.push(`${formatPercent(special)} ${goes} to hidden special tokens`);
  if (outside > 0) parts.push(`${formatPercent(outside)} ${parts.length ? "" : `${goes} `}to tokens outside of the window`);
  return parts.length ? `${name ? `${name}: ` : ""}${joinWords(parts)}.` : "";
}
