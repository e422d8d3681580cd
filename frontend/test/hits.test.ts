import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cellAt, layoutHeat } from "../src/heatmap";
import { findLinks, largestByMass, spreadOut } from "../src/links";
import { splitName } from "../src/page";
import type { MapData, Scalar } from "../src/types";
import { gridCellAt, layoutGrid, sortHeads } from "../src/views/grid";
import { layoutLayers, nodeAt, whyIncomplete, writableBars } from "../src/views/layers";
import { classAt, layoutMatrix, matrixCellAt } from "../src/views/matrix";
import type { LensHeader, Sheet } from "../src/types";

describe("a heat map", () => {
  const shape = { width: 400, height: 300, labels: { left: true, top: true }, marginals: true, bar: "right" as const, largestCell: 30 };
  const layout = layoutHeat(shape, 50, 40, { row: 2, column: 1, rows: 4, columns: 6 });

  it("is hit in the cells that are drawn, also when zoomed", () => {
    for (let row = 2; row < 6; row++)
      for (let column = 1; column < 7; column++) {
        const x = layout.x + ((column - 1 + 0.5) * layout.width) / 6;
        const y = layout.y + ((row - 2 + 0.5) * layout.height) / 4;
        assert.deepEqual(cellAt(layout, x, y), { row, column });
      }
  });

  it("is not hit beside them", () => {
    for (const [x, y] of [[layout.x - 1, layout.y + 5], [layout.x + layout.width + 1, layout.y + 5], [layout.x + 5, layout.y - 1], [layout.x + 5, layout.y + layout.height + 1]])
      assert.equal(cellAt(layout, x!, y!), null);
  });

  it("fits into its shape, with square cells", () => {
    assert.ok(layout.total[0] <= shape.width && layout.total[1] <= shape.height);
    assert.ok(Math.abs(layout.width / 6 - layout.height / 4) < 1e-9);
  });
});

describe("the grid", () => {
  it("is hit at each head, by labels", () => {
    const layout = layoutGrid([3, 7], [0, 2, 4], null, 400, 1);
    for (const cell of layout.cells) assert.equal(gridCellAt(layout, cell.x + 3, cell.y + 3), cell);
    assert.deepEqual(layout.cells.map((cell) => `L${cell.layer}H${cell.head}`), ["L3H0", "L3H2", "L3H4", "L7H0", "L7H2", "L7H4"]);
    assert.equal(gridCellAt(layout, 1, 1), null);
  });

  it("of 32 × 32 heads fits a page", () => {
    const labels = Array.from({ length: 32 }, (_, i) => i);
    assert.ok(layoutGrid(labels, labels, null, 1200, 1).width <= 1200);
  });

  it("is sorted by a number, heads without one last", () => {
    const scalar = { values: [[0.2, null], [0.9, 0.5]] } as Scalar;
    assert.deepEqual(sortHeads([4, 5], [0, 1], scalar), [[5, 0], [5, 1], [4, 0], [4, 1]]);
  });
});

describe("the table of numbers", () => {
  const layout = layoutMatrix([[1, 0, 2], [0, 1, 2]], 700, 500);
  const [left, top] = [layout.side.x - 26 - 3 * layout.cell[0], 24];

  it("is hit at each head, in the order that is drawn", () => {
    const found = [0, 1, 2].map((column) => matrixCellAt(layout, left + (column + 0.5) * layout.cell[0], top + 5));
    assert.deepEqual(found.map((cell) => cell!.head), [1, 0, 2]);
    assert.deepEqual(matrixCellAt(layout, left + 1, top + layout.cell[1] + 1), { layer: 1, head: 0 });
  });

  it("has bars beside each layer, and nothing elsewhere", () => {
    assert.deepEqual(matrixCellAt(layout, layout.side.x + 5, top + 5), { layer: 0, head: null });
    assert.deepEqual([matrixCellAt(layout, left - 3, top + 5), matrixCellAt(layout, left, top - 3), matrixCellAt(layout, left, top + 2 * layout.cell[1] + 1)], [null, null, null]);
  });

  it("finds the class in a stacked bar", () => {
    assert.deepEqual([0, 0.49, 0.51, 0.99, -0.1].map((share) => classAt([2, 0, 2], share)), [0, 0, 2, 2, -1]);
  });
});

describe("the picture by layers", () => {
  const layout = layoutLayers(3, 5, 600, 500, 40, false);

  it("is hit at the nearest layer of a token", () => {
    const y = (row: number): number => 30 + (3 - row) * layout.gap;
    for (const row of [0, 1, 2, 3]) assert.deepEqual(nodeAt(layout, 58 + 2.5 * layout.column, y(row) + 2), { token: 2, row });
    assert.deepEqual(nodeAt(layout, 58 + 1, layout.bars + 20), { token: 0, row: -1 });
    assert.equal(nodeAt(layout, 20, 60), null);
  });

  it("writes numbers that do not overlap, the largest first", () => {
    assert.deepEqual(writableBars(Float32Array.of(0.1, 0.5, 0.4, 0, 0.2), 20), [1, 4]);
  });

  it("says which layers are missing", () => {
    const lens = { name: "rollout:start=1" } as LensHeader;
    assert.equal(whyIncomplete({ layers: [1, 2, 3] } as Sheet, lens), null);
    assert.match(whyIncomplete({ layers: [1, 3] } as Sheet, lens)!, /every layer from 1 on, but these maps have layers 1, 3/);
  });
});

describe("links", () => {
  it("have labels where there is room, those that come first first", () => {
    assert.deepEqual(spreadOut([7, 2, 3, 9, 8], (index) => 6 * index, 12), [7, 2, 9]);
  });

  it("are the largest weights until a share of the mass", () => {
    const row = Float32Array.of(0.125, -0.5, NaN, 0.25, 0.125);
    assert.deepEqual(largestByMass(row, 0.5), [1]);
    assert.deepEqual(largestByMass(row, 0.75), [1, 3]);
    assert.deepEqual(largestByMass(row, 1), [1, 3, 0, 4]);
  });

  it("to a key are found by column", () => {
    const map = { rows: 2, columns: 2 } as MapData;
    assert.deepEqual(findLinks(map, Float32Array.of(0.25, 0.75, 0.5, 0.5), 1, { columns: [0] }), [{ row: 0, column: 0, weight: 0.25 }, { row: 1, column: 0, weight: 0.5 }]);
  });
});

describe("blocks of a page", () => {
  it("lie in shared elements by layer", () => {
    assert.deepEqual(splitName("0/1/map/3/7"), { element: "0/1/map/3", part: 7 });
    assert.deepEqual(splitName("0/visible/2"), { element: "0/visible", part: 2 });
    assert.deepEqual(splitName("0/1/graph/2"), { element: "0/1/graph", part: 2 });
    assert.deepEqual(splitName("0/1/thumbs"), { element: "0/1/thumbs", part: 0 });
    assert.deepEqual(splitName("result/share.svg"), { element: "result/share.svg", part: 0 });
  });
});
