import { describe, expect, it } from "vitest";
import { classCounts, classLetters, layerMeans, listCells, makeFilter, numberFormat, rowOrder, sortCells, valueRange } from "../src/heads";
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
    expect(layerMeans(scalar.values)).toEqual([2, null, 8 / 3]);
  });

  it("are sorted with the largest first, and heads without a number last", () => {
    const order = sortCells(listCells(scalar)).map((cell) => cell.value);
    expect(order.slice(0, 5)).toEqual([5, 5, 3, 1, -2]);
    expect(order.slice(5)).toEqual([null, null, null, null]);
  });

  it("keep the order of heads where two are equal", () => {
    expect(rowOrder(scalar.values[2]!, true)).toEqual([1, 2, 0]);
    expect(rowOrder(scalar.values[2]!, false)).toEqual([0, 1, 2]);
  });

  it("have a symmetric scale where some are negative, else one from the smallest to the largest", () => {
    expect(valueRange(scalar.values)).toEqual({ low: -5, high: 5, signed: true });
    expect(valueRange([[2, null, 3]])).toEqual({ low: 2, high: 3, signed: false });
    expect(valueRange([[0.4, 0.4]])).toEqual({ low: 0, high: 0.4, signed: false });
    expect(valueRange([[null]])).toEqual({ low: 0, high: 1, signed: false });
  });

  it("are written alike, by the largest of them", () => {
    expect([0.5, -0.001, null].map(numberFormat([[0.5, -0.001]]))).toEqual(["0.50", "0.00", "–"]);
    expect(numberFormat([[0.05]])(-0.05)).toBe("−.050");
    expect(numberFormat([[3, 12]])(12)).toBe("12");
    expect(numberFormat([[123.4]])(-123.4)).toBe("−123.4");
  });
});

describe("filters", () => {
  const pass = (filter: Parameters<typeof makeFilter>[0]): string[] =>
    listCells(scalar).filter(makeFilter(filter, scalar)).map((cell) => `L${cell.layer}H${cell.head}`);

  it("of a tenth keep at least one head", () => {
    expect(pass({ kind: "highest" })).toEqual(["L2H1"]);
    expect(pass({ kind: "lowest" })).toEqual(["L2H0"]);
  });

  it("of intervals keep those that leave out zero", () => {
    expect(pass({ kind: "nonzero" })).toEqual(["L0H0", "L2H0", "L2H1"]);
  });

  it("of a class can be of one layer", () => {
    expect(pass({ kind: "class", index: 5, layer: null })).toEqual(["L2H1", "L2H2"]);
    expect(pass({ kind: "class", index: 5, layer: 0 })).toEqual([]);
  });
});

describe("classes", () => {
  it("are counted by layer, without heads of no class", () => {
    expect(classCounts([[0, 2, 2, null], [1, 1, 1, 1]], 3)).toEqual([[1, 0, 2], [0, 4, 0]]);
  });

  it("have letters that differ", () => {
    expect(classLetters(["vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous"])).toEqual(["V", "D", "E", "B", "H"]);
    expect(new Set(classLetters(Array.from({ length: 20 }, () => "same"))).size).toBe(20);
  });
});
