import { describe, expect, it } from "vitest";
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
    expect(findComparison(header, 1, 0, "raw")).toBe(header.comparisons[0]);
    expect(findComparison(header, 0, 1, "norm")).toBeNull();
    expect(findComparison(header, 0, 0, "raw")).toBeNull();
  });

  it("name the head that is least alike", () => {
    expect(leastAlike([[0.9, null], [0.2, 0.2]])).toEqual({ layer: 1, head: 0, value: 0.2 });
    expect(leastAlike([[null]])).toBeNull();
  });

  it("say why there are none", () => {
    const other = { text: ["a", "c", "d"], special: [], word: null };
    const why = (sheet: Sheet, lens = "raw"): string | null => whyNotCompared(makeHeader(makeSheet({ lensNames: ["raw", "norm"] }), sheet), 0, 1, lens);
    expect(why(makeSheet())).toBeNull();
    expect(why(makeSheet({ heads: [0, 1] }))).toContain("2 × 1 and 2 × 2");
    expect(why(makeSheet({ queries: other }))).toContain("different tokens (2 and 3)");
    expect(why(makeSheet({ lensNames: ["flow"] }))).toContain("no lens in common");
    expect(why(makeSheet({ lensNames: ["raw", "norm"] }), "norm")).toContain("lens norm");
    expect(whyNotCompared(makeHeader(makeSheet(), makeSheet()), 1, 1, "raw")).toContain("same sheet");
  });
});

describe("two sheets", () => {
  it("share lenses, those with a map per head first", () => {
    expect(sharedLenses(makeSheet({ lensNames: ["rollout", "raw", "norm"] }), makeSheet({ lensNames: ["raw", "rollout"] }))).toEqual(["raw", "rollout"]);
  });

  it("have the same tokens only where both sides agree", () => {
    const keys = { text: ["a"], special: [], word: null };
    expect(sameTokens(makeSheet(), makeSheet())).toBe(true);
    expect(sameTokens(makeSheet(), makeSheet({ keys }))).toBe(false);
  });

  it("are named by their sites where the model is the same", () => {
    const header = makeHeader(makeSheet(), makeSheet({ site: "cross" }), makeSheet({ model: "two" }));
    expect([0, 1, 2].map((index) => sheetName(header, index))).toEqual(["one · self", "one · cross", "two"]);
  });
});

describe("two maps", () => {
  it("differ cell by cell, and masked cells stay masked", () => {
    const map = (...weights: number[]): MapData => ({ weights: Float32Array.from(weights) }) as MapData;
    expect([...difference(map(1, NaN, 0.5), map(0.25, NaN, 1))]).toEqual([0.75, NaN, -0.5]);
  });

  it("have the cosine of the cells that both can see", () => {
    expect(cosine(Float32Array.of(3, 4, NaN), Float32Array.of(4, 3, 9))).toBeCloseTo(24 / 25, 12);
    expect(cosine(Float32Array.of(0), Float32Array.of(1))).toBeNaN();
  });
});
