/** Sentences about one map: what a picture shows, in words. */
import { formatNumber, formatPercent, joinWords, quote } from "./format";
import type { MapData, Viewer } from "./types";

/** The indices of the largest |weights|, largest first. */
export function strongest(weights: Float32Array, most: number): number[] {
  const kept: number[] = [];
  for (let i = 0; i < weights.length; i++) {
    const size = Math.abs(weights[i]!);
    if (!(size > 0)) continue;
    if (kept.length === most && size <= Math.abs(weights[kept.at(-1)!]!)) continue;
    const at = kept.findIndex((other) => Math.abs(weights[other]!) < size);
    kept.splice(at < 0 ? kept.length : at, 0, i);
    if (kept.length > most) kept.pop();
  }
  return kept;
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

/** "“career” attends to “footballer” 0.31, “.” 0.22 and “[SEP]” 0.10." */
export function readChosen(map: MapData, weights: Float32Array, chosen: readonly number[], side: "query" | "key"): string {
  const own = side === "query" ? map.queries : map.keys;
  const others = side === "query" ? map.keys : map.queries;
  const sums = sumChosen(map, weights, chosen, side);
  const top = strongest(sums, 3).map((index) => `${quote(others[index]!.text)} ${formatNumber(sums[index]!, 2)}`);
  const shown = chosen.slice(0, 4).map((index) => quote(own[index]!.text));
  const names = chosen.length > 4 ? `${shown.join(", ")} and ${chosen.length - 4} more` : joinWords(shown);
  if (!top.length) return `${names} ${chosen.length > 1 ? "have" : "has"} no weight here.`;
  const verb = side === "query" ? (chosen.length > 1 ? "together attend to" : "attends to") : chosen.length > 1 ? "together are attended to by" : "is attended to by";
  return `${names} ${verb} ${joinWords(top)}.`;
}

/** "On average, most weight goes to “[SEP]” 0.45, “.” 0.10 and “is” 0.08." */
export function readMeans(map: MapData, means: Float32Array): string {
  const top = strongest(means, 3).map((index) => `${quote(map.keys[index]!.text)} ${formatNumber(means[index]!, 2)}`);
  if (!top.length) return "all weights are zero.";
  return `${map.signed ? "the largest mean weights go" : "on average, most weight goes"} to ${joinWords(top)}.`;
}

/** What share of a head's attention reaches the output, where the sheet knows it. */
export function readShare(viewer: Viewer): string {
  const { layer, head, lens } = viewer.state;
  if (viewer.lens().merged || !(lens.startsWith("effective") || lens === "raw")) return "";
  const scalar = viewer.sheet().scalars.find((each) => each.name === "share");
  const value = scalar ? viewer.value(scalar, layer, head).value : null;
  if (value === null) return "";
  if (value > 0.9995) return "All of this head's attention reaches the output.";
  return `${formatPercent(value)} of this head's attention, by norm, reaches the output.`;
}

/** What is hidden, and how much weight goes there. */
export function readHidden(map: MapData): string {
  const { special, outside } = map.hidden;
  const parts = [];
  if (special > 0) parts.push(`${formatPercent(special)} of the weight of these rows goes to hidden special tokens`);
  if (outside > 0) parts.push(`${formatPercent(outside)} ${parts.length ? "" : "of the weight of these rows goes "}to tokens outside of the window`);
  return parts.length ? `${joinWords(parts)}.` : "";
}
