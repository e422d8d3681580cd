import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decode, errorOf, float16, halfToNumber } from "../src/decode";
import { assertNear } from "./near";

function halves(...codes: number[]): ArrayBuffer {
  return Uint16Array.from(codes).buffer as ArrayBuffer;
}

describe("one byte a weight", () => {
  it("is the square of the code's share of the scale", () => {
    const found = decode(Uint8Array.of(0, 51, 102, 255).buffer as ArrayBuffer, "sqrt8", false, 0.5);
    [0, 0.02, 0.08, 0.5].forEach((wanted, i) => assertNear(found[i], wanted, 1e-7));
  });

  it("keeps the sign where the lens is signed", () => {
    const found = decode(Int8Array.of(-127, -64, 0, 64, 127).buffer as ArrayBuffer, "sqrt8", true, 2);
    const part = 2 * (64 / 127) ** 2;
    [-2, -part, 0, part, 2].forEach((wanted, i) => assertNear(found[i], wanted, 1e-6));
  });

  it("is read from a place in a longer block", () => {
    const found = decode(Uint8Array.of(9, 9, 255, 0, 9).buffer as ArrayBuffer, "sqrt8", false, 1, 2, 2);
    assert.deepEqual([...found], [1, 0]);
  });

  it("is off by no more than its error says", () => {
    for (const signed of [false, true])
      for (let weight = 0; weight <= 0.7; weight += 0.0037) {
        const steps = signed ? 127 : 255;
        const shown = 0.7 * (Math.round(Math.sqrt(weight / 0.7) * steps) / steps) ** 2;
        assert.ok(Math.abs(shown - weight) <= errorOf(shown, "sqrt8", signed, 0.7) + 1e-12, `${weight} as ${shown}`);
      }
  });
});

describe("half precision", () => {
  it("has ones, halves and signs", () => {
    assert.deepEqual([0x3c00, 0x3800, 0xbc00, 0xc000, 0x7bff].map(halfToNumber), [1, 0.5, -1, -2, 65504]);
  });

  it("has numbers below the smallest normal one", () => {
    assert.deepEqual([0x0001, 0x8001, 0x03ff, 0x0400].map(halfToNumber), [2 ** -24, -(2 ** -24), 1023 * 2 ** -24, 2 ** -14]);
    assert.equal(halfToNumber(0x8000), -0);
  });

  it("has infinities and what is no number", () => {
    assert.deepEqual([0x7c00, 0xfc00, 0x7e00].map(halfToNumber), [Infinity, -Infinity, NaN]);
  });

  it("is read as an array, also from an odd place", () => {
    assert.deepEqual([...float16(halves(0x3c00, 0x0001, 0x7c00))], [1, 2 ** -24, Infinity]);
    const odd = new Uint8Array(5);
    odd.set(new Uint8Array(halves(0x3c00, 0x3800)), 1);
    assert.deepEqual([...decode(odd.buffer as ArrayBuffer, "float16", false, 1, 1, 2)], [1, 0.5]);
  });

  it("has an error of half its last digit", () => {
    assert.equal(errorOf(1, "float16", false, 1), 2 ** -11);
    assert.equal(errorOf(0.75, "float16", false, 1), 2 ** -12);
    assert.equal(errorOf(NaN, "float16", false, 1), 0);
  });
});

describe("single precision", () => {
  it("is exact, also from a place that is no multiple of four", () => {
    const bytes = new Uint8Array(9);
    bytes.set(new Uint8Array(Float32Array.of(0.1, -3).buffer), 1);
    assert.deepEqual([...decode(bytes.buffer as ArrayBuffer, "float32", true, 1, 1, 2)], [Math.fround(0.1), -3]);
    assert.equal(errorOf(0.1, "float32", true, 1), 0);
  });
});
