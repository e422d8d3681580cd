import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { wrap } from "../src/exporting";
import { barMarks, findBeyond, keepTogether } from "../src/format";
import { findEnds, listCells, longLabel, tellMeasured, variableName } from "../src/heads";
import { leastAlike } from "../src/pairs";
import { findShare, nameLargest, readChosen, readMeans } from "../src/reading";
import type { MapData, Scalar, Viewer } from "../src/types";
import { differencePair, otherLens, whyNoDifference } from "../src/lenses";
import { layoutGrid, nextCell } from "../src/views/grid";

const name = (index: number): string => "abcdefgh"[index]!;

function makeScalar(change: Partial<Scalar>): Scalar {
  return { name: "share", label: "share", lens: null, values: [[1]], low: null, high: null, n: null, classes: null, ...change };
}

describe("the largest weights", () => {
  it("are named with their numbers", () => {
    assert.equal(nameLargest(Float32Array.of(0.1, 0.5, NaN, 0.3, 0.02), name), "b 0.50, d 0.30 and a 0.10");
    assert.equal(nameLargest(new Float32Array(3), name), "");
  });

  it("are counted where more of them tie than can be named", () => {
    assert.equal(nameLargest(new Float32Array(8).fill(0.125), name), "all 8 tokens, which tie at 0.13");
    assert.equal(nameLargest(Float32Array.of(1, 1, 0.2, 1, 1, 0.1, 0.1, 0.1), name), "4 of 8 tokens, which tie at 1");
    assert.equal(nameLargest(Float32Array.of(0.6, 0.1, 0.1, 0.1, 0.1), name), "a 0.60 and 4 tokens, which tie at 0.10");
  });

  it("are all named where they tie but are few", () => {
    assert.equal(nameLargest(Float32Array.of(0.5, 0.5, 0), name), "a 0.50 and b 0.50");
  });
});

describe("the share that reaches the output", () => {
  const [other, plain, measured] = [makeScalar({ lens: "effective:heads" }), makeScalar({ lens: "effective" }), makeScalar({ lens: "raw", n: "n = 6" })];

  it("is that of the lens that is shown", () => {
    assert.equal(findShare([measured, other, plain], "effective:heads"), other);
    assert.equal(findShare([measured, other, plain], "effective"), plain);
  });

  it("is that of the plain effective lens where the lens has none", () => {
    assert.equal(findShare([measured, other, plain], "raw"), plain);
    assert.equal(findShare([measured, other], "raw"), null);
  });
});

describe("numbers of a measurement", () => {
  it("have a name of their own beside those of the text", () => {
    const [mean, own, alone] = tellMeasured([makeScalar({ n: "n = 6", lens: "raw" }), makeScalar({}), makeScalar({ name: "peak", n: "n = 6" })]);
    assert.deepEqual([mean!.name, own!.name, alone!.name], ["share (measured)", "share", "peak"]);
    assert.equal(longLabel(mean!), "share, measured · raw, n = 6");
    assert.equal(variableName(mean!), "share");
  });

  it("name the lens once", () => {
    const [label, lens] = ["effective share (norm)", "effective"];
    assert.equal(longLabel(makeScalar({ label, lens })), label);
    assert.equal(longLabel(makeScalar({ label, lens: "effective:bias=true" })), `${label} · effective:bias=true`);
    assert.equal(longLabel(makeScalar({ label: "entropy", lens })), "entropy · effective");
  });
});

describe("ends of numbers", () => {
  it("hold all heads that tie", () => {
    const { largest, smallest } = findEnds(listCells(makeScalar({ values: [[1, 0.5], [null, 1]] })));
    assert.deepEqual(largest.map((cell) => [cell.layer, cell.head]), [[0, 0], [1, 1]]);
    assert.equal(smallest.length, 1);
  });

  it("of cosines say how many heads are least alike", () => {
    assert.deepEqual(leastAlike([[1, 1], [1, null]]), { layer: 0, head: 0, value: 1, ties: 3, of: 3 });
  });
});

describe("ends of a color bar", () => {
  it("say where weights are beyond them", () => {
    const weights = Float32Array.of(NaN, 0.9, -0.1);
    assert.deepEqual(barMarks(0.5, false, findBeyond(weights, 0.5)), [[0, "0"], [1, "≥ 0.50"]]);
    assert.deepEqual(barMarks(0.5, true, findBeyond(weights, 0.5)), [[0, "−0.50"], [0.5, "0"], [1, "≥ 0.50"]]);
    assert.deepEqual(barMarks(0.05, true, findBeyond(weights, 0.05))[0], [0, "≤ −0.050"]);
    assert.deepEqual(barMarks(0.9, false, findBeyond(weights, 0.9)), [[0, "0"], [1, "0.90"]]);
  });
});

describe("a sentence", () => {
  it("keeps numbers with their unit, and both sides of a difference, on one line", () => {
    assert.equal(keepTogether("15 % of a − b, n = 12."), "15\u00a0% of a\u00a0−\u00a0b, n\u00a0=\u00a012.");
  });
});

function makeViewer(lenses: readonly string[], state: { lens: string; other: string }): Viewer {
  const headers = lenses.map((each) => ({ name: each, merged: each === "rollout" }));
  return { state, sheet: () => ({ lenses: headers }), lens: () => headers.find((each) => each.name === state.lens) } as unknown as Viewer;
}

describe("a difference", () => {
  const units = ["a", "b"].map((text, index) => ({ text, tokens: [index], special: false }));
  const map = { rows: 2, columns: 2, queries: units, keys: units } as unknown as MapData;
  const [weights, none] = [Float32Array.of(0.25, -0.5, 0, 0.125), new Float32Array(4)];

  it("is read as one, and not as attention", () => {
    assert.equal(readChosen(map, weights, [0], "query", true), "the largest differences from “a” are to “b” −0.50 and “a” 0.25.");
    assert.equal(readChosen(map, weights, [0], "key", true), "the largest differences to “a” are from “a” 0.25.");
    assert.equal(readChosen(map, weights, [0, 1], "query", true), "the largest summed differences from “a” and “b” are to “b” −0.38 and “a” 0.25.");
    assert.equal(readChosen(map, none, [0], "query", true), "there is no difference from “a”.");
    assert.equal(readMeans(map, Float32Array.of(0.125, -0.1875), true), "averaged over the tokens shown, the largest differences are to “b” −0.19 and “a” 0.13.");
    assert.equal(readMeans(map, none.subarray(2), true), "there is no difference.");
  });

  it("has raw attention as what is subtracted", () => {
    const lenses = ["raw", "norm", "effective", "rollout"];
    assert.deepEqual(differencePair(makeViewer(lenses, { lens: "raw", other: "" })), ["effective", "raw"]);
    assert.deepEqual(differencePair(makeViewer(lenses, { lens: "raw", other: "effective" })), ["effective", "raw"]);
    assert.deepEqual(differencePair(makeViewer(lenses, { lens: "effective", other: "" })), ["effective", "raw"]);
    assert.deepEqual(differencePair(makeViewer(lenses, { lens: "effective", other: "norm" })), ["effective", "norm"]);
    assert.deepEqual(differencePair(makeViewer(lenses, { lens: "rollout", other: "" })), ["effective", "raw"]);
    assert.equal(otherLens(makeViewer(["norm", "effective", "value"], { lens: "value", other: "" })), "effective");
  });

  it("of lenses with other units is refused", () => {
    assert.equal(whyNoDifference("effective", "raw"), "");
    assert.match(whyNoDifference("norm", "raw"), /^norm and raw have different units/);
  });
});

describe("the grid", () => {
  const [layers, heads] = [[0, 1, 2, 3, 4, 5], Array.from({ length: 12 }, (_, i) => i)];

  it("has cells so small that all layers fit, if they can still be read", () => {
    assert.ok(layoutGrid(layers, heads, null, 1200, 1, 520).height <= 524);
    assert.equal(layoutGrid(layers, heads, null, 1200, 1, 300).size[0], 48);
  });

  it("is left by no arrow at its edge", () => {
    const layout = layoutGrid(layers, heads, null, 1200, 1);
    assert.equal(nextCell(layout, 11, [1, 0]), -1);
    assert.equal(nextCell(layout, 11, [0, 1]), 23);
    assert.equal(layout.cells[nextCell(layout, 3, [0, -1])], undefined);
  });
});

describe("the words of a picture", () => {
  it("are broken into lines", () => {
    assert.deepEqual(wrap("one two three fourteen", 8, (text) => text.length), ["one two", "three", "fourteen"]);
  });
});
