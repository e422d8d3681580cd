import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sortKey, sortRows, splitNumbers } from "../src/sorting";

describe("sorting of tables", () => {
  it("reads the number that a cell begins with", () => {
    assert.deepEqual(["0.52 (0.49–0.55)", "−3", "1,234", "12 %", "< .001", ".5", 7].map(sortKey), [0.52, -3, 1234, 12, 0.001, 0.5, 7]);
    assert.deepEqual(["L3H4", "4th", "", "–", null].map(sortKey), ["L3H4", "4th", null, null, null]);
  });

  it("puts numbers by size, and empty cells last in both directions", () => {
    const rows = [["10"], ["9 (8–10)"], [null], ["−1"]];
    assert.deepEqual(sortRows(rows, 0, false).flat(), ["−1", "9 (8–10)", "10", null]);
    assert.deepEqual(sortRows(rows, 0, true).flat(), ["10", "9 (8–10)", "−1", null]);
  });

  it("puts names by their letters and then their numbers", () => {
    assert.deepEqual(sortRows([["L10H1"], ["L2H1"], ["L2H0"]], 0, false).flat(), ["L2H0", "L2H1", "L10H1"]);
  });

  it("keeps the order of equal rows", () => {
    assert.deepEqual(sortRows([[1, "a"], [1, "b"], [0, "c"]], 0, true).map((row) => row[1]), ["a", "b", "c"]);
  });
});

describe("tables for computers", () => {
  it("have numbers as numbers, and intervals in columns of their own", () => {
    const rows = [["a", "0.52 [0.49, 0.55]", "−3"], ["b", "–", "1,200"]];
    assert.deepEqual(splitNumbers(["name", "mean", "n"], rows), {
      columns: ["name", "mean", "mean low", "mean high", "n"],
      rows: [["a", 0.52, 0.49, 0.55, -3], ["b", null, null, null, 1200]],
    });
  });

  it("keep text where not all cells are numbers", () => {
    assert.deepEqual(splitNumbers(["x"], [["0.5 (L0H2)"], ["1"]]), { columns: ["x"], rows: [["0.5 (L0H2)"], ["1"]] });
  });
});
