import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { neighbor, outside, patchAt, patchBox } from "../src/patches";
import type { Picture } from "../src/types";

const picture: Picture = { width: 60, height: 40, rows: 2, columns: 3, keyRow: [-1, 0, 0, 0, 1, 1, 1], keyColumn: [-1, 0, 1, 2, 0, 1, 2] };

describe("patches", () => {
  it("are hit where they lie, and nothing outside of the picture", () => {
    assert.equal(patchAt(picture, 0, 0), 1);
    assert.equal(patchAt(picture, 0.34, 0.49), 2);
    assert.equal(patchAt(picture, 0.999, 0.5), 6);
    assert.deepEqual([patchAt(picture, 1, 0), patchAt(picture, 0, -0.01), patchAt(picture, NaN, 0)], [-1, -1, -1]);
  });

  it("have boxes whose middle hits them again", () => {
    for (const key of [1, 2, 3, 4, 5, 6]) {
      const [x, y, width, height] = patchBox(picture, key, 300, 200)!;
      assert.equal(patchAt(picture, (x + width / 2) / 300, (y + height / 2) / 200), key);
    }
    assert.equal(patchBox(picture, 0, 300, 200), null);
  });

  it("are left by arrows only where there is another", () => {
    assert.equal(neighbor(picture, 1, 1, 0), 4);
    assert.equal(neighbor(picture, 3, 0, 1), 3);
    assert.equal(neighbor(picture, 0, 1, 0), 1);
  });
});

describe("weights of queries", () => {
  it("outside of all patches are summed", () => {
    assert.deepEqual(outside(picture, Float32Array.of(0.25, 0.75, 0, 0, 0, 0, 0)), { keys: [0], mass: 0.25 });
  });
});
