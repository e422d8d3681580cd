import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { headsCall, mapsOf, noteHidden, withWords } from "../src/python";
import type { Scalar, Sheet } from "../src/types";

const scalar: Scalar = { name: "entropy", label: "entropy", lens: "raw", values: [[1]], low: null, high: null, n: null, classes: null };

function makeSheet(python: string): Sheet {
  return { site: "self", lenses: [{ name: "raw" }], python } as Sheet;
}

describe("a line of Python", () => {
  it("measures again where the lines have the model", () => {
    const call = 'hs.draw(hs.measure(model, trace.examples, statistics="entropy", lens="raw"), "heads", variable="entropy")';
    assert.equal(headsCall(makeSheet("model = hs.load()\nmaps = [1]"), scalar), call);
  });

  it("measures with the edit of the maps", () => {
    const lines = "model = hs.load()\nwith hs.edited(model, 'zero_heads:heads=L0H1') as edited:\n    trace = 1\nmaps = [1]";
    const call = "hs.draw(hs.measure(model, trace.examples, statistics=\"entropy\", lens=\"raw\", edit='zero_heads:heads=L0H1'), \"heads\", variable=\"entropy\")";
    assert.equal(headsCall(makeSheet(lines), scalar), call);
  });

  it("is a comment where no line makes the model", () => {
    assert.match(headsCall(makeSheet("# trace: the one that is shown\nmaps = [1]"), scalar), /^# with the model of these maps/);
  });

  it("names the variable of a measurement and not its key", () => {
    const line = headsCall(makeSheet("data = 1"), { ...scalar, name: "entropy (measured)", n: "n = 6" });
    assert.equal(line, 'hs.draw(data, "heads", variable="entropy", lens="raw")');
  });

  it("merges words, and says what it does not hide", () => {
    const [list, dataset] = [mapsOf(makeSheet("maps = [1]"), "raw"), mapsOf(makeSheet("maps = 1"), "raw")];
    const state = { words: true, special: false, count: 0 };
    assert.equal(withWords(list, state), "hs.to_words(maps[0])");
    assert.equal(noteHidden(state, list), "  # of all tokens");
    assert.equal(withWords(dataset, state), "maps");
    assert.equal(noteHidden(state, dataset), "  # of all tokens; words are not merged");
    assert.equal(noteHidden({ words: false, special: true, count: 0 }, list), "");
  });
});
