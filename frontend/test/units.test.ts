import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MapData, Sheet, Tokens } from "../src/types";
import { allUnits, hiddenShares, joinPieces, reduceMap, shownUnits } from "../src/units";
import { assertNear } from "./near";

const tokens: Tokens = { text: ["[CLS]", "foot", "##ball", "is", "[SEP]"], special: [0, 4], word: [-1, 0, 0, 1, -1] };
const sheet = { queries: tokens, keys: null } as Sheet;
const everything = { words: false, special: true, start: 0, count: 0 };

/** Weights 0.01 to 0.25, row after row. */
function makeMap(change: Partial<MapData> = {}): MapData {
  const weights = Float32Array.from({ length: 25 }, (_, i) => (i + 1) / 100);
  const units = allUnits(tokens, false);
  return { rows: 5, columns: 5, weights, queries: units, keys: units, signed: false, scale: 0.25, codec: "float32", hidden: [], missing: null, ...change };
}

describe("words", () => {
  it("join their pieces and leave special tokens alone", () => {
    const units = allUnits(tokens, true);
    assert.deepEqual(units.map((unit) => unit.text), ["[CLS]", "football", "is", "[SEP]"]);
    assert.deepEqual(units[1]!.tokens, [1, 2]);
    assert.deepEqual(units.map((unit) => unit.special), [true, false, false, true]);
  });

  it("are written without the markers of their pieces", () => {
    assert.equal(joinPieces(["·foot", "ball"]), "football");
    assert.equal(joinPieces(["foot", "##ball"]), "football");
    assert.equal(joinPieces(["·"]), "·");
  });

  it("get the sum of the weights to their pieces, and the mean of those from them", () => {
    const map = reduceMap(makeMap(), sheet, { ...everything, words: true });
    assert.deepEqual([map.rows, map.columns], [4, 4]);
    assertNear(map.weights[0 * 4 + 1], 0.02 + 0.03, 1e-6);
    assertNear(map.weights[1 * 4 + 0], (0.06 + 0.11) / 2, 1e-6);
    assertNear(map.weights[1 * 4 + 1], (0.07 + 0.08 + 0.12 + 0.13) / 2, 1e-6);
  });

  it("are masked only where all their pieces are", () => {
    const weights = makeMap().weights.slice();
    weights[1] = weights[2] = weights[5 * 3 + 1] = NaN;
    const map = reduceMap(makeMap({ weights }), sheet, { ...everything, words: true });
    assert.equal(map.weights[0 * 4 + 1], NaN);
    assertNear(map.weights[2 * 4 + 1], 0.18, 1e-6);
  });
});

describe("what is hidden", () => {
  it("is nothing where all is shown, and the map is the same", () => {
    const map = makeMap();
    assert.equal(reduceMap(map, sheet, everything), map);
  });

  it("of special tokens has its share of the weight of the rows that are shown", () => {
    const map = reduceMap(makeMap(), sheet, { ...everything, special: false });
    assert.deepEqual(map.keys.map((unit) => unit.text), ["foot", "##ball", "is"]);
    const rows = [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
    const special = 6 + 10 + 11 + 15 + 16 + 20;
    assertNear(hiddenShares(map).special, special / rows.reduce((a, b) => a + b), 1e-6);
    assert.equal(hiddenShares(map).outside, 0);
    assertNear(hiddenShares(map, [0, 2]).special, (6 + 10 + 16 + 20) / (6 + 7 + 8 + 9 + 10 + 16 + 17 + 18 + 19 + 20), 1e-6);
  });

  it("of a window has its share, too, and a word is inside where it begins inside", () => {
    const choice = { words: true, special: true, start: 1, count: 2 };
    assert.deepEqual(shownUnits(tokens, choice).map((unit) => unit.text), ["football"]);
    const map = reduceMap(makeMap(), sheet, choice);
    assertNear(hiddenShares(map).outside, (6 + 9 + 10 + 11 + 14 + 15) / (6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15), 1e-6);
  });

  it("counts the size of negative weights", () => {
    const weights = makeMap().weights.map((weight) => -weight);
    assertNear(hiddenShares(reduceMap(makeMap({ weights }), sheet, { ...everything, special: false })).special, 78 / 195, 1e-6);
  });

  it("of a window that ends after the last token is moved back", () => {
    assert.deepEqual(shownUnits(tokens, { ...everything, start: 4, count: 2 }).map((unit) => unit.text), ["is", "[SEP]"]);
  });
});

describe("a map of which nothing is left", () => {
  it("says why", () => {
    const window = reduceMap(makeMap(), sheet, { words: false, special: false, start: 0, count: 1 });
    assert.match(window.missing!, /^No token is left: the window has special tokens only/);
    assert.equal(reduceMap(makeMap(), sheet, { words: false, special: false, start: 0, count: 2 }).missing, null);
  });
});
