/** What passes through the edges of a graph of layers on its way to a token; the same as headscope.plotting.paths. */

/** Edges that are drawn of a layer at most, for each token. */
export const MAX_PER_TOKEN = 2;

/** One drawn edge, from the token `key` below a layer to the token `query` above it. */
export interface Edge {
  layer: number;
  query: number;
  key: number;
  weight: number;
}

/**
 * How much of each token above a layer reaches the target above the highest one: a row of the product of the layers
 * above. Entry i is for the tokens above layer i; the last but one row is the target itself, and entry 0 of the result
 * is for the input.
 */
export function relevance(layers: readonly Float32Array[], tokens: number, target: number): Float64Array[] {
  const rows = [oneHot(tokens, target)];
  for (let layer = layers.length - 1; layer >= 0; layer--) rows.unshift(rowTimes(rows[0]!, layers[layer]!, tokens));
  return rows;
}

/** The weight of all paths to the target through each edge, by layer, query × key. */
export function followProducts(layers: readonly Float32Array[], tokens: number, target: number): Float64Array[] {
  const above = relevance(layers, tokens, target);
  const below = sumsBelow(layers, tokens);
  return layers.map((edges, layer) => {
    const passing = new Float64Array(tokens * tokens);
    for (let query = 0; query < tokens; query++) {
      const share = above[layer + 1]![query]!;
      if (!share) continue;
      for (let key = 0; key < tokens; key++) {
        const place = query * tokens + key;
        passing[place] = share * finite(edges[place]!) * below[layer]![key]!;
      }
    }
    return passing;
  });
}

/** For each layer, the weight of all paths from the input to the tokens below it: 1 where rows sum to 1. */
function sumsBelow(layers: readonly Float32Array[], tokens: number): Float64Array[] {
  const sums = [new Float64Array(tokens).fill(1)];
  for (const edges of layers.slice(0, -1)) {
    const last = sums.at(-1)!;
    sums.push(Float64Array.from({ length: tokens }, (_, query) => {
      let total = 0;
      for (let key = 0; key < tokens; key++) total += finite(edges[query * tokens + key]!) * last[key]!;
      return total;
    }));
  }
  return sums;
}

/** The most that can pass through each edge to the target: its capacity, or less where less can arrive from either end. */
export function followCapacities(layers: readonly Float32Array[], tokens: number, target: number): Float64Array[] {
  const below = capacitiesBelow(layers, tokens);
  let above: Float64Array = oneHot(tokens, target);
  const passing: Float64Array[] = [];
  for (let layer = layers.length - 1; layer >= 0; layer--) {
    const edges = layers[layer]!;
    const cells = new Float64Array(tokens * tokens);
    const next = new Float64Array(tokens);
    for (let query = 0; query < tokens; query++)
      for (let key = 0; key < tokens; key++) {
        const place = query * tokens + key;
        const arriving = Math.min(finite(edges[place]!), above[query]!);
        cells[place] = Math.min(arriving, below[layer]![key]!);
        next[key]! += arriving;
      }
    above = next.map((total) => Math.min(1, total));
    passing.unshift(cells);
  }
  return passing;
}

function capacitiesBelow(layers: readonly Float32Array[], tokens: number): Float64Array[] {
  const bounds = [new Float64Array(tokens).fill(Infinity)];
  for (const edges of layers.slice(0, -1)) {
    const last = bounds.at(-1)!;
    bounds.push(Float64Array.from({ length: tokens }, (_, query) => {
      let total = 0;
      for (let key = 0; key < tokens; key++) total += Math.min(finite(edges[query * tokens + key]!), last[key]!);
      return total;
    }));
  }
  return bounds;
}

/** The largest edges of each layer up to a share of its total, as far as they reach the target through kept edges above. */
export function keepLargest(passing: readonly Float64Array[], tokens: number, target: number, mass: number): Edge[][] {
  const kept: Edge[][] = passing.map(() => []);
  let connected = new Set([target]);
  for (let layer = passing.length - 1; layer >= 0; layer--) {
    kept[layer] = keepLayer(passing[layer]!, tokens, layer, connected, mass);
    connected = new Set(kept[layer]!.map((edge) => edge.key));
  }
  return kept;
}

function keepLayer(cells: Float64Array, tokens: number, layer: number, connected: ReadonlySet<number>, mass: number): Edge[] {
  const total = cells.reduce((sum, weight) => sum + Math.abs(weight), 0);
  const edges: Edge[] = [];
  for (const query of [...connected].sort((a, b) => a - b))
    for (let key = 0; key < tokens; key++) {
      const weight = cells[query * tokens + key]!;
      if (weight) edges.push({ layer, query, key, weight });
    }
  edges.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
  let before = 0;
  const kept = edges.slice(0, MAX_PER_TOKEN * tokens).filter((edge) => {
    const keep = before < (mass - 1e-9) * total;
    before += Math.abs(edge.weight);
    return keep;
  });
  return kept;
}

/** The share of a layer's total that the kept edges have. */
export function keptShare(passing: Float64Array, kept: readonly Edge[]): number {
  const total = passing.reduce((sum, weight) => sum + Math.abs(weight), 0);
  return total ? kept.reduce((sum, edge) => sum + Math.abs(edge.weight), 0) / total : 1;
}

function rowTimes(row: Float64Array, edges: Float32Array, tokens: number): Float64Array {
  const product = new Float64Array(tokens);
  for (let query = 0; query < tokens; query++) {
    const share = row[query]!;
    if (!share) continue;
    for (let key = 0; key < tokens; key++) product[key]! += share * finite(edges[query * tokens + key]!);
  }
  return product;
}

function oneHot(tokens: number, token: number): Float64Array {
  const row = new Float64Array(tokens);
  row[token] = 1;
  return row;
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}
