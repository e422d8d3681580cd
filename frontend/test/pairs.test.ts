import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertNear } from "./near";
import { cosine, difference, findComparison, leastAlike, sameTokens, sharedLenses, sheetName, whyNotCompared } from "../src/pairs";
import type { Header, LensHeader, MapData, Sheet } from "../src/types";

function makeSheet(change: Partial<Sheet> & { lensNames?: string[] } = {}): Sheet {
  const { lensNames = ["raw"], ...rest } = change;
  const lenses = lensNames.map((name) => ({ name, merged: name === "rollout" }) as LensHeader);
  const queries = { text: ["a", "b"], special: [], word: null };
  return { model: "hub/one", site: "self", layers: [0, 1], heads: [0], queries, keys: null, lenses, ...rest } as Sheet;
}

function makeHeader(...sheets: Sheet[]): Header {
  const comparisons = [{ first: 0, second: 1, lens: "raw", name: "cosine" as const, values: [[0.9], [0.2]] }];
  return { sheets, comparisons } as unknown as Header;
}

describe("comparisons", () => {
  it("are found in either order, and only for their lens", () => {
    const header = makeHeader(makeSheet(), makeSheet());
    assert.equal(findComparison(header, 1, 0, "raw"), header.comparisons[0]);
    assert.equal(findComparison(header, 0, 1, "norm"), null);
    assert.equal(findComparison(header, 0, 0, "raw"), null);
  });

  it("name the head that is least alike", () => {
    assert.deepEqual(leastAlike([[0.9, null], [0.2, 0.2]]), { layer: 1, head: 0, value: 0.2, ties: 2, of: 3 });
    assert.equal(leastAlike([[null]]), null);
  });

  it("say why there are none", () => {
    const other = { text: ["a", "c", "d"], special: [], word: null };
    const why = (sheet: Sheet, lens = "raw"): string | null => whyNotCompared(makeHeader(makeSheet({ lensNames: ["raw", "norm"] }), sheet), 0, 1, lens);
    assert.equal(why(makeSheet()), null);
    assert.ok(why(makeSheet({ heads: [0, 1] }))?.includes("2 × 1 and 2 × 2"));
    assert.ok(why(makeSheet({ queries: other }))?.includes("different tokens (2 and 3)"));
    assert.ok(why(makeSheet({ keys: other }))?.includes("different keys (2 and 3), so"));
    assert.ok(why(makeSheet({ lensNames: ["flow"] }))?.includes("no lens in common"));
    assert.ok(why(makeSheet({ lensNames: ["raw", "norm"] }), "norm")?.includes("lens norm"));
    assert.ok(whyNotCompared(makeHeader(makeSheet(), makeSheet()), 1, 1, "raw")?.includes("same sheet"));
  });
});

describe("two sheets", () => {
  it("share lenses, those with a map per head first", () => {
    assert.deepEqual(sharedLenses(makeSheet({ lensNames: ["rollout", "raw", "norm"] }), makeSheet({ lensNames: ["raw", "rollout"] })), ["raw", "rollout"]);
  });

  it("have the same tokens only where both sides agree", () => {
    const keys = { text: ["a"], special: [], word: null };
    assert.equal(sameTokens(makeSheet(), makeSheet()), true);
    assert.equal(sameTokens(makeSheet(), makeSheet({ keys })), false);
  });

  it("are named by their sites where the model is the same", () => {
    const header = makeHeader(makeSheet(), makeSheet({ site: "cross" }), makeSheet({ model: "two" }));
    assert.deepEqual([0, 1, 2].map((index) => sheetName(header, index)), ["one · self", "one · cross", "two"]);
  });

  it("are named by their texts where site and model are the same, and by their order where these are too", () => {
    const texts = makeHeader(makeSheet({ text: "first" }), makeSheet({ text: "second" }));
    assert.deepEqual([0, 1].map((index) => sheetName(texts, index)), ["one · first", "one · second"]);
    const same = makeHeader(makeSheet({ text: "first" }), makeSheet({ text: "first" }));
    assert.deepEqual([0, 1].map((index) => sheetName(same, index)), ["one · 1", "one · 2"]);
  });
});

describe("two maps", () => {
  it("differ cell by cell, and masked cells stay masked", () => {
    const map = (...weights: number[]): MapData => ({ weights: Float32Array.from(weights) }) as MapData;
    assert.deepEqual([...difference(map(1, NaN, 0.5), map(0.25, NaN, 1))], [0.75, NaN, -0.5]);
  });

  it("have the cosine of the cells that both can see", () => {
    assertNear(cosine(Float32Array.of(3, 4, NaN), Float32Array.of(4, 3, 9)), 24 / 25);
    assert.equal(cosine(Float32Array.of(0), Float32Array.of(1)), NaN);
  });
});
