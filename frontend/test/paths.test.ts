import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertNear } from "./near";
import { followCapacities, followProducts, keepLargest, keptShare, MAX_PER_TOKEN, relevance } from "../src/paths";

const low = Float32Array.of(0.5, 0.25, 0.25, 0, 0.75, 0.25, 0.125, 0.125, 0.75);
const high = Float32Array.of(0.5, 0.5, 0, 0.25, 0.5, 0.25, 0, 0.25, 0.75);

function product(a: Float32Array, b: Float32Array): number[] {
  return Array.from({ length: 9 }, (_, i) => [0, 1, 2].reduce((sum, k) => sum + a[3 * Math.floor(i / 3) + k]! * b[3 * k + (i % 3)]!, 0));
}

describe("relevance", () => {
  it("is a row of the literal product of all layers at the input", () => {
    const literal = product(high, low);
    for (const target of [0, 1, 2]) assert.deepEqual([...relevance([low, high], 3, target)[0]!], literal.slice(3 * target, 3 * target + 3));
  });

  it("is the target alone above the highest layer, and a row of the highest layer below it", () => {
    const rows = relevance([low, high], 3, 1);
    assert.deepEqual([...rows[2]!], [0, 1, 0]);
    assert.deepEqual([...rows[1]!], [0.25, 0.5, 0.25]);
  });

  it("takes masked edges for no edges", () => {
    const masked = Float32Array.of(1, NaN, 0.5, 0.5);
    assert.deepEqual([...relevance([masked], 2, 0)[0]!], [1, 0]);
  });
});

describe("paths", () => {
  it("carry through each layer all that reaches the target", () => {
    for (const layer of followProducts([low, high], 3, 2)) assertNear(layer.reduce((a, b) => a + b), 1);
  });

  it("of products have the weight of all paths through an edge", () => {
    const [below] = followProducts([low, high], 3, 0);
    assertNear(below![3 * 1 + 2], 0.5 * 0.25);
  });

  it("of signed edges count what lies below with its sign", () => {
    const signed = Float32Array.of(1, -1, 0, 1);
    const [, top] = followProducts([signed, signed], 2, 0);
    assert.deepEqual([...top!], [0, -1, 0, 0]);
  });

  it("of capacities pass no more than the smallest bound on the way", () => {
    const [below, above] = followCapacities([low, high], 3, 0);
    assert.deepEqual([...above!], [0.5, 0.5, 0, 0, 0, 0, 0, 0, 0]);
    assert.deepEqual([...below!], [0.5, 0.25, 0.25, 0, 0.5, 0.25, 0, 0, 0]);
  });
});

describe("the largest edges", () => {
  const passing = followProducts([low, high], 3, 0);

  it("are kept until the share of the mass is reached", () => {
    const kept = keepLargest(passing, 3, 0, 0.5);
    assert.deepEqual(kept[1]!.map((edge) => [edge.query, edge.key]), [[0, 0]]);
    assertNear(keptShare(passing[1]!, kept[1]!), 0.5);
  });

  it("all have a way to the target through kept edges above", () => {
    const kept = keepLargest(passing, 3, 0, 0.6);
    const reached = new Set(kept[1]!.map((edge) => edge.key));
    assert.ok(kept[0]!.length > 0);
    assert.equal(kept[0]!.every((edge) => reached.has(edge.query)), true);
  });

  it("are no more than can be told apart", () => {
    const uniform = new Float64Array(100).fill(0.01);
    assert.equal(keepLargest([uniform], 10, 4, 1)[0]!.length, 10);
    assert.equal(keepLargest([uniform, uniform], 10, 4, 1)[0]!.length, MAX_PER_TOKEN * 10);
  });
});
