import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { classCounts, classLetters, formatFilter, isFilter, layerMeans, listCells, makeFilter, numberFormat, parseFilter, rowOrder, sortCells, valueRange } from "../src/heads";
import type { Scalar } from "../src/types";

const scalar: Scalar = {
  name: "x",
  label: "x",
  lens: null,
  values: [
    [1, null, 3],
    [null, null, null],
    [-2, 5, 5],
  ],
  low: [
    [0.5, null, -1],
    [null, null, null],
    [-3, 4, -1],
  ],
  high: [
    [1.5, null, 4],
    [null, null, null],
    [-1, 6, 6],
  ],
  n: "4",
  classes: null,
};

describe("numbers by head", () => {
  it("have means of the heads that have a number, and none where no head has", () => {
    assert.deepEqual(layerMeans(scalar.values), [2, null, 8 / 3]);
  });

  it("are sorted with the largest first, and heads without a number last", () => {
    const order = sortCells(listCells(scalar)).map((cell) => cell.value);
    assert.deepEqual(order.slice(0, 5), [5, 5, 3, 1, -2]);
    assert.deepEqual(order.slice(5), [null, null, null, null]);
  });

  it("keep the order of heads where two are equal", () => {
    assert.deepEqual(rowOrder(scalar.values[2]!, true), [1, 2, 0]);
    assert.deepEqual(rowOrder(scalar.values[2]!, false), [0, 1, 2]);
  });

  it("have a symmetric scale where some are negative, else one from the smallest to the largest", () => {
    assert.deepEqual(valueRange(scalar.values), { low: -5, high: 5, signed: true });
    assert.deepEqual(valueRange([[2, null, 3]]), { low: 2, high: 3, signed: false });
    assert.deepEqual(valueRange([[0.4, 0.4]]), { low: 0, high: 0.4, signed: false });
    assert.deepEqual(valueRange([[null]]), { low: 0, high: 1, signed: false });
  });

  it("are written alike, by the largest of them", () => {
    assert.deepEqual([0.5, -0.001, null].map(numberFormat([[0.5, -0.001]])), ["0.50", "0.00", "–"]);
    assert.equal(numberFormat([[0.05]])(-0.05), "−.050");
    assert.equal(numberFormat([[3, 12]])(12), "12");
    assert.equal(numberFormat([[123.4]])(-123.4), "−123.4");
  });
});

describe("filters", () => {
  const pass = (filter: Parameters<typeof makeFilter>[0]): string[] =>
    listCells(scalar).filter(makeFilter(filter, scalar)).map((cell) => `L${cell.layer}H${cell.head}`);

  it("of a tenth keep at least one head", () => {
    assert.deepEqual(pass({ kind: "highest" }), ["L2H1"]);
    assert.deepEqual(pass({ kind: "lowest" }), ["L2H0"]);
  });

  it("of intervals keep those that leave out zero", () => {
    assert.deepEqual(pass({ kind: "nonzero" }), ["L0H0", "L2H0", "L2H1"]);
  });

  it("of a class can be of one layer", () => {
    assert.deepEqual(pass({ kind: "class", index: 5, layer: null }), ["L2H1", "L2H2"]);
    assert.deepEqual(pass({ kind: "class", index: 5, layer: 0 }), []);
  });
});

describe("a filter as text", () => {
  const layers = [2, 5, 8];
  const plain: Scalar = { ...scalar, low: null, high: null };
  const classes = { ...scalar, low: null, high: null, classes: ["block", "vertical", "diagonal"] };

  it("is read back as it was written, with the label of its layer", () => {
    assert.equal(formatFilter({ kind: "class", index: 2, layer: 1 }, layers), "class-2-layer-5");
    for (const filter of [{ kind: "all" }, { kind: "class", index: 2, layer: 1 }, { kind: "class", index: 0, layer: null }] as const)
      assert.deepEqual(parseFilter(formatFilter(filter, layers), classes, layers), filter);
    for (const kind of ["highest", "lowest"] as const) assert.deepEqual(parseFilter(kind, plain, layers), { kind });
  });

  it("shows all heads where the number has no such class, layer or interval", () => {
    for (const text of ["", "class-3", "class-1-layer-4", "highest", "nonzero", "class-x"]) assert.deepEqual(parseFilter(text, classes, layers), { kind: "all" }, text);
    assert.deepEqual(parseFilter("class-0", plain, layers), { kind: "all" });
    assert.deepEqual(parseFilter("nonzero", scalar, layers), { kind: "nonzero" });
    assert.deepEqual(["class-1-layer-4", "all", "class-", "Highest"].map(isFilter), [true, false, false, false]);
  });
});

describe("classes", () => {
  it("are counted by layer, without heads of no class", () => {
    assert.deepEqual(classCounts([[0, 2, 2, null], [1, 1, 1, 1]], 3), [[1, 0, 2], [0, 4, 0]]);
  });

  it("have letters that differ", () => {
    assert.deepEqual(classLetters(["vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous"]), ["V", "D", "E", "B", "H"]);
    assert.equal(new Set(classLetters(Array.from({ length: 20 }, () => "same"))).size, 20);
  });
});
