import { describe, expect, it } from "vitest";
import { meanRow, neighbor, outside, patchAt, patchBox } from "../src/patches";
import type { Picture } from "../src/types";

const picture: Picture = { width: 60, height: 40, rows: 2, columns: 3, keyRow: [-1, 0, 0, 0, 1, 1, 1], keyColumn: [-1, 0, 1, 2, 0, 1, 2] };

describe("patches", () => {
  it("are hit where they lie, and nothing outside of the picture", () => {
    expect(patchAt(picture, 0, 0)).toBe(1);
    expect(patchAt(picture, 0.34, 0.49)).toBe(2);
    expect(patchAt(picture, 0.999, 0.5)).toBe(6);
    expect([patchAt(picture, 1, 0), patchAt(picture, 0, -0.01), patchAt(picture, NaN, 0)]).toEqual([-1, -1, -1]);
  });

  it("have boxes whose middle hits them again", () => {
    for (const key of [1, 2, 3, 4, 5, 6]) {
      const [x, y, width, height] = patchBox(picture, key, 300, 200)!;
      expect(patchAt(picture, (x + width / 2) / 300, (y + height / 2) / 200)).toBe(key);
    }
    expect(patchBox(picture, 0, 300, 200)).toBeNull();
  });

  it("are left by arrows only where there is another", () => {
    expect(neighbor(picture, 1, 1, 0)).toBe(4);
    expect(neighbor(picture, 3, 0, 1)).toBe(3);
    expect(neighbor(picture, 0, 1, 0)).toBe(1);
  });
});

describe("weights of queries", () => {
  it("are averaged over those that can see a key", () => {
    const weights = Float32Array.of(0.5, 0.25, NaN, 0.25, 0.75, NaN);
    expect([...meanRow(weights, 3, [0, 1])]).toEqual([0.375, 0.5, NaN]);
  });

  it("outside of all patches are summed", () => {
    expect(outside(picture, Float32Array.of(0.25, 0.75, 0, 0, 0, 0, 0))).toEqual({ keys: [0], mass: 0.25 });
  });
});
