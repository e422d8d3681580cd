import { describe, expect, it } from "vitest";
import { followCapacities, followProducts, keepLargest, keptShare, MAX_PER_TOKEN, relevance } from "../src/paths";

const low = Float32Array.of(0.5, 0.25, 0.25, 0, 0.75, 0.25, 0.125, 0.125, 0.75);
const high = Float32Array.of(0.5, 0.5, 0, 0.25, 0.5, 0.25, 0, 0.25, 0.75);

function product(a: Float32Array, b: Float32Array): number[] {
  return Array.from({ length: 9 }, (_, i) => [0, 1, 2].reduce((sum, k) => sum + a[3 * Math.floor(i / 3) + k]! * b[3 * k + (i % 3)]!, 0));
}

describe("relevance", () => {
  it("is a row of the literal product of all layers at the input", () => {
    const literal = product(high, low);
    for (const target of [0, 1, 2]) expect([...relevance([low, high], 3, target)[0]!]).toEqual(literal.slice(3 * target, 3 * target + 3));
  });

  it("is the target alone above the highest layer, and a row of the highest layer below it", () => {
    const rows = relevance([low, high], 3, 1);
    expect([...rows[2]!]).toEqual([0, 1, 0]);
    expect([...rows[1]!]).toEqual([0.25, 0.5, 0.25]);
  });

  it("takes masked edges for no edges", () => {
    const masked = Float32Array.of(1, NaN, 0.5, 0.5);
    expect([...relevance([masked], 2, 0)[0]!]).toEqual([1, 0]);
  });
});

describe("paths", () => {
  it("carry through each layer all that reaches the target", () => {
    for (const layer of followProducts([low, high], 3, 2)) expect(layer.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
  });

  it("of products have the weight of all paths through an edge", () => {
    const [below] = followProducts([low, high], 3, 0);
    expect(below![3 * 1 + 2]).toBeCloseTo(0.5 * 0.25, 12);
  });

  it("of signed edges count what lies below with its sign", () => {
    const signed = Float32Array.of(1, -1, 0, 1);
    const [, top] = followProducts([signed, signed], 2, 0);
    expect([...top!]).toEqual([0, -1, 0, 0]);
  });

  it("of capacities pass no more than the smallest bound on the way", () => {
    const [below, above] = followCapacities([low, high], 3, 0);
    expect([...above!]).toEqual([0.5, 0.5, 0, 0, 0, 0, 0, 0, 0]);
    expect([...below!]).toEqual([0.5, 0.25, 0.25, 0, 0.5, 0.25, 0, 0, 0]);
  });
});

describe("the largest edges", () => {
  const passing = followProducts([low, high], 3, 0);

  it("are kept until the share of the mass is reached", () => {
    const kept = keepLargest(passing, 3, 0, 0.5);
    expect(kept[1]!.map((edge) => [edge.query, edge.key])).toEqual([[0, 0]]);
    expect(keptShare(passing[1]!, kept[1]!)).toBeCloseTo(0.5, 12);
  });

  it("all have a way to the target through kept edges above", () => {
    const kept = keepLargest(passing, 3, 0, 0.6);
    const reached = new Set(kept[1]!.map((edge) => edge.key));
    expect(kept[0]!.length).toBeGreaterThan(0);
    expect(kept[0]!.every((edge) => reached.has(edge.query))).toBe(true);
  });

  it("are no more than can be told apart", () => {
    const uniform = new Float64Array(100).fill(0.01);
    expect(keepLargest([uniform], 10, 4, 1)[0]).toHaveLength(10);
    expect(keepLargest([uniform, uniform], 10, 4, 1)[0]).toHaveLength(MAX_PER_TOKEN * 10);
  });
});
