import { describe, expect, it } from "vitest";
import { sortKey, sortRows } from "../src/sorting";

describe("sorting of tables", () => {
  it("reads the number that a cell begins with", () => {
    expect(["0.52 (0.49–0.55)", "−3", "1,234", "12 %", "< .001", ".5", 7].map(sortKey)).toEqual([0.52, -3, 1234, 12, 0.001, 0.5, 7]);
    expect(["L3H4", "4th", "", "–", null].map(sortKey)).toEqual(["L3H4", "4th", null, null, null]);
  });

  it("puts numbers by size, and empty cells last in both directions", () => {
    const rows = [["10"], ["9 (8–10)"], [null], ["−1"]];
    expect(sortRows(rows, 0, false).flat()).toEqual(["−1", "9 (8–10)", "10", null]);
    expect(sortRows(rows, 0, true).flat()).toEqual(["10", "9 (8–10)", "−1", null]);
  });

  it("puts names by their letters and then their numbers", () => {
    expect(sortRows([["L10H1"], ["L2H1"], ["L2H0"]], 0, false).flat()).toEqual(["L2H0", "L2H1", "L10H1"]);
  });

  it("keeps the order of equal rows", () => {
    expect(sortRows([[1, "a"], [1, "b"], [0, "c"]], 0, true).map((row) => row[1])).toEqual(["a", "b", "c"]);
  });
});
