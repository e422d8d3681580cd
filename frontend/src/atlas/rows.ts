/** Sparse rows of a map: what a token attends to, and what attends to it. */
import type { StoredMap } from "./types";

export interface Link {
  query: number;
  key: number;
  weight: number;
}

/** All kept weights with their places, row after row. */
export function listLinks(map: StoredMap, unit: number): Link[] {
  const links: Link[] = [];
  let at = 0;
  map.counts.forEach((count, query) => {
    for (const end = at + count; at < end; at++) links.push({ query, key: map.keys[at]!, weight: map.weights[at]! * unit });
  });
  return links;
}

/** The kept weights of one token, largest first: of its row (to), or of its column (from). */
export function linksOf(links: readonly Link[], token: number, side: "to" | "from"): Link[] {
  const own = links.filter((link) => (side === "to" ? link.query : link.key) === token);
  return own.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
}

/** One weight for each token of the other side: of the links of a token; 0 where none was kept. */
export function spread(links: readonly Link[], side: "to" | "from", length: number): Float32Array {
  const weights = new Float32Array(length);
  for (const link of links) weights[side === "to" ? link.key : link.query] = link.weight;
  return weights;
}

/** A small picture of the kept weights: each pixel the weight of largest size that it covers. */
export function pool(links: readonly Link[], rows: number, columns: number, side: number): { weights: Float32Array; rows: number; columns: number } {
  const [r, c] = [Math.max(1, Math.min(rows, side)), Math.max(1, Math.min(columns, side))];
  const weights = new Float32Array(r * c);
  for (const { query, key, weight } of links) {
    const place = Math.floor((query * r) / rows) * c + Math.floor((key * c) / columns);
    if (Math.abs(weight) > Math.abs(weights[place]!)) weights[place] = weight;
  }
  return { weights, rows: r, columns: c };
}

/** Where the colors of a small picture end: few weights are much larger than all others, which would not be seen. */
export function pictureLimit(weights: Float32Array): number {
  const sizes = weights.filter((weight) => weight !== 0).map(Math.abs).sort();
  return sizes[Math.floor(0.8 * sizes.length)] ?? 1;
}

/** Where colors end: the largest size among ordinary tokens, so that [CLS] and [SEP] do not hide the others. */
export function shadeLimit(weights: ArrayLike<number>, special: readonly number[]): number {
  const hidden = new Set(special);
  let largest = 0;
  let any = 0;
  for (let i = 0; i < weights.length; i++) {
    const size = Math.abs(weights[i]!);
    any = Math.max(any, size);
    if (!hidden.has(i)) largest = Math.max(largest, size);
  }
  return largest || any || 1;
}
