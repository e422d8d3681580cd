import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { colorLimit, poolMax, tableIndex } from "../src/canvas";
import { colorTable, palettes, parseHex, shareOf, textOn, type Theme } from "../src/colors";

const themes: readonly Theme[] = ["light", "dark"];

/** The contrast of two colors by WCAG. */
function contrast(one: string, other: string): number {
  const light = (hex: string): number => {
    const [r, g, b] = parseHex(hex).map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b! + 0.05;
  };
  const [a, b] = [light(one), light(other)];
  return Math.max(a, b) / Math.min(a, b);
}

const brightness = ([r, g, b]: readonly [number, number, number]): number => 0.3 * r + 0.59 * g + 0.11 * b;

describe("colors of weights", () => {
  it("go one way from the background, in both themes", () => {
    for (const theme of themes) {
      const shades = Array.from({ length: 17 }, (_, i) => brightness(colorTable(theme, false).rgb(i / 16)));
      const steps = shades.slice(1).map((shade, i) => shade - shades[i]!);
      assert.ok(steps.every((step) => (theme === "light" ? step <= 0 : step >= 0)), `${theme}: ${shades.map(Math.round).join()}`);
    }
  });

  it("of both signs meet at the color of zero, which is near the background", () => {
    for (const theme of themes) {
      const table = colorTable(theme, true);
      const background = brightness(parseHex(palettes[theme].background));
      assert.ok(Math.abs(brightness(table.rgb(0.5)) - background) < 16);
      assert.ok([0, 1].every((end) => Math.abs(brightness(table.rgb(end)) - background) > 90));
    }
  });

  it("are the same as words and as text", () => {
    const table = colorTable("light", false);
    const [r, g, b] = table.rgb(1);
    assert.equal(table.words[255], ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
    assert.equal(table.css(1), `rgb(${r} ${g} ${b})`);
  });

  it("end at the limit, and clip beyond it", () => {
    assert.deepEqual([0, 0.5, 1, 2].map((weight) => tableIndex(weight, 1, false)), [0, 128, 255, 255]);
    assert.deepEqual([-2, -1, 0, 1].map((weight) => tableIndex(weight, 1, true)), [0, 0, 128, 255]);
    assert.equal(tableIndex(0.3, 0, false), 0);
    assert.deepEqual([shareOf(-0.5, 1, true), shareOf(0.5, 1, false), shareOf(9, 1, false)], [0.25, 0.5, 1]);
  });
});

describe("text", () => {
  it("can be read on the background, and on every class", () => {
    for (const theme of themes) {
      const palette = palettes[theme];
      for (const role of ["ink", "quiet", "accent"] as const) assert.ok(contrast(palette[role], palette.background) >= 4.5, `${theme} ${role}`);
      for (const color of palette.classes) assert.ok(contrast(textOn(parseHex(color)), color) >= 3, `${theme} ${color}`);
    }
  });
});

describe("the limit of a color scale", () => {
  it("is not that of one outlier", () => {
    const weights = new Float32Array(10_000).fill(0.1);
    weights[17] = 100;
    assert.ok(colorLimit(weights, 100) < 0.2);
  });

  it("is positive for maps of zeros and of nothing that can be seen", () => {
    assert.equal(colorLimit(new Float32Array(9), 3), 1);
    assert.equal(colorLimit(new Float32Array(9).fill(NaN), 3), 1);
  });
});

describe("pictures with fewer pixels than cells", () => {
  it("keep the largest weight of each block with its sign", () => {
    const weights = Float32Array.of(0.1, -0.9, 0.2, 0.3, NaN, 0.5, NaN, NaN);
    assert.deepEqual([...poolMax(weights, 2, 4, 1, 2)], [Math.fround(-0.9), Math.fround(0.3)]);
  });

  it("are masked only where all cells of a block are", () => {
    assert.deepEqual([...poolMax(Float32Array.of(NaN, NaN, NaN, 0.5), 1, 4, 1, 2)], [NaN, 0.5]);
  });
});
