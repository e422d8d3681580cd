import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defaultState, nearest, normalize, parseFragment, toFragment } from "../src/state";
import type { Header, LensHeader, Scalar, Sheet, State } from "../src/types";

const text = ["[CLS]", "a", "b", "c", "[SEP]"];
const sheet = {
  model: "m",
  layers: [2, 5, 8],
  heads: [0, 1, 2, 3],
  queries: { text, special: [0, 4], word: null },
  keys: null,
  lenses: [{ name: "raw" }, { name: "rollout:residual=0.5" }] as LensHeader[],
  scalars: [{ name: "share", values: [[0.4, 0.9]] }, { name: "entropy", values: [[1]] }] as unknown as Scalar[],
} as Sheet;
const header: Header = { format: 1, title: "", made: [], sheets: [sheet, { ...sheet, keys: { text: ["x", "y"], special: [], word: null } }], comparisons: [], result: null, messages: [] };
const defaults = defaultState(header);

function read(fragment: string): State {
  return normalize(header, { ...defaults, ...parseFragment(fragment) });
}

describe("a fragment", () => {
  it("brings back the state it was made of", () => {
    const state: State = { ...defaults, view: "layers", sheet: 1, second: 0, lens: "rollout:residual=0.5", layer: 8, head: 3, tokens: [1, 4, 0], words: true, special: false, start: 1, count: 3, scalar: "entropy", filter: "class-2-layer-5", sort: "scalar", top: 5, mass: 0.35, theme: "dark" };
    assert.deepEqual(read(`#${toFragment(state, defaults)}`), state);
  });

  it("is empty for the defaults, and names what differs only", () => {
    assert.equal(toFragment(defaults, defaults), "");
    assert.equal(toFragment({ ...defaults, lens: "rollout:residual=0.5", tokens: [1, 2] }, defaults), "lens=rollout:residual=0.5&tokens=1,2");
  });

  it("of garbage gives the defaults", () => {
    for (const garbage of ["#", "#%%%", "#view=<script>&layer=-1&head=1e9&tokens=a,,-3,1.5", "#mass=NaN&count=-4&words=maybe&theme=pink", `#${"x".repeat(1e5)}`, "#__proto__=1&constructor=2", "#filter=all&top=-3", "#filter=class-<b>&top=4"])
      assert.deepEqual(read(garbage), defaults, garbage.slice(0, 40));
  });

  it("with unknown names gives way to known ones", () => {
    const state = read("#lens=norm&scalar=nothing&layer=7&head=99&sheet=12&start=99&count=99&mass=0");
    assert.deepEqual([state.lens, state.scalar, state.layer, state.head, state.sheet, state.start, state.mass], ["raw", "", 8, 3, 1, 4, 0.05]);
  });

  it("keeps tokens that are there, each once, and not more than 4096", () => {
    assert.deepEqual(read("#tokens=1,1,99,3").tokens, [1, 3]);
    assert.deepEqual(read("#sheet=1&side=key&tokens=0,1,2").tokens, [0, 1]);
    assert.equal(parseFragment(`#tokens=${Array.from({ length: 5000 }, (_, i) => i).join(",")}`).tokens!.length, 4096);
  });
});

describe("the state", () => {
  it("begins at the first head, with the share that reaches the output where heads differ in it", () => {
    assert.deepEqual([defaults.view, defaults.layer, defaults.head, defaults.scalar, defaults.second], ["grid", 2, 0, "share", 1]);
  });

  it("of a result without maps begins at the result", () => {
    const empty = defaultState({ ...header, sheets: [] });
    assert.equal(empty.view, "result");
    assert.deepEqual(normalize({ ...header, sheets: [] }, empty), { ...empty, sheet: 0, second: 0 });
  });

  it("takes the nearest label, and the first of equally near ones", () => {
    assert.deepEqual([nearest([2, 5, 8], 6), nearest([2, 4], 3), nearest([2, 4], NaN), nearest([], 3)], [5, 2, 2, 0]);
  });
});
