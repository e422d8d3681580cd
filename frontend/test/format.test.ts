import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { toCsv } from "../src/exporting";
import { count, csvLine, formatNumber, formatPercent, formatScalar, formatWeight, joinWords, quote } from "../src/format";
import { drawCall, headsCall } from "../src/python";
import { escape, Svg } from "../src/svg";
import type { Scalar, Sheet } from "../src/types";

describe("numbers", () => {
  it("have three digits, a real minus, and no false zeros", () => {
    assert.deepEqual([0.12345, -0.5, 3.14159, 12.345, 0, 1234567, 0.000012].map((value) => formatNumber(value)), ["0.123", "−0.500", "3.14", "12.3", "0", "1.2e6", "1.2e-5"]);
    assert.deepEqual([null, NaN, Infinity, -Infinity, 1234].map((value) => formatNumber(value)), ["–", "–", "∞", "−∞", "1,234"]);
  });

  it("of one byte are written with their error", () => {
    assert.equal(formatWeight(0.5, { codec: "sqrt8", signed: false, scale: 1 }), "0.500 ± 0.003");
    assert.equal(formatWeight(-0.5, { codec: "sqrt8", signed: true, scale: 1 }), "−0.500 ± 0.006");
    assert.equal(formatWeight(0.5, { codec: "float16", signed: false, scale: 1 }), "0.500");
    assert.equal(formatWeight(NaN, { codec: "sqrt8", signed: false, scale: 1 }), "masked");
  });

  it("in percent are 0 or 100 only where they are", () => {
    assert.deepEqual([0, 0.0004, 0.154, 0.997, 0.9999, 1].map(formatPercent), ["0 %", "< 1 %", "15 %", "99.7 %", "100 %", "100 %"]);
  });

  it("of classes are their names", () => {
    const scalar = { classes: ["block", "vertical"] } as Scalar;
    assert.deepEqual([1, null, 7].map((value) => formatScalar(scalar, value)), ["vertical", "–", "–"]);
  });
});

describe("words", () => {
  it("are joined, quoted and counted", () => {
    assert.deepEqual([joinWords([]), joinWords(["a"]), joinWords(["a", "b", "c"])], ["", "a", "a, b and c"]);
    assert.deepEqual([quote("·cat"), quote("a".repeat(40), 5)], ["“cat”", "“aaaa…”"]);
    assert.deepEqual([count(1, "token"), count(1400, "token")], ["1 token", "1,400 tokens"]);
  });
});

describe("CSV", () => {
  it("quotes what would break a line, and leaves out what is no number", () => {
    assert.equal(csvLine(['say "hi"', "a,b", "line\nbreak", 0.5, null, NaN]), '"say ""hi""","a,b","line\nbreak",0.5,,');
    assert.equal(toCsv({ caption: "", columns: ["a", "b"], rows: [[1, "x"]] }), "a,b\r\n1,x\r\n");
  });

  it("gives a spreadsheet no formula", () => {
    assert.equal(csvLine(["=1+1", "@SUM(A1)", "+cmd", "-x", -3]), "'=1+1,'@SUM(A1),'+cmd,'-x,-3");
  });
});

describe("SVG", () => {
  it("holds text as text", () => {
    const svg = new Svg(10, 10, "#ffffff", "<title>");
    svg.text(1, 2, '</text><script>alert("1")</script>\u0000');
    assert.ok(!svg.toString().includes("<script>"));
    assert.equal(escape("a<b>&\"'\u0007"), "a&lt;b&gt;&amp;&quot;&#39;");
  });

  it("draws equal neighbors as one shape, and nothing where a cell is masked", () => {
    const svg = new Svg(10, 10, "#fff");
    svg.cells(0, 0, [2, 2], 1, 4, (_, column) => (column < 2 ? "red" : column === 2 ? null : "blue"));
    assert.match(svg.toString(), /M0 0h4v2h-4z" fill="red"/);
    assert.match(svg.toString(), /M6 0h2v2h-2z" fill="blue"/);
  });
});

describe("Python lines", () => {
  it("leave out what is not set, and quote what is text", () => {
    assert.equal(drawCall("maps", "matrix", { layer: 3, lens: undefined, at: ['a="b"'] }), 'hs.draw(maps, "matrix", layer=3, at=["a=\\"b\\""])');
  });

  it("draw a measured number of the result, and one of the maps of these", () => {
    const scalar = { name: "entropy", lens: "raw", n: "n = 100", classes: null } as Scalar;
    const lenses = [{ name: "raw" }, { name: "effective" }];
    assert.equal(headsCall({ python: "data = hs.open_result(1)", lenses } as Sheet, scalar), 'hs.draw(data, "heads", variable="entropy", lens="raw")');
    const at = { ...scalar, name: "offsets type=other word reach=2" };
    assert.equal(headsCall({ python: "data = hs.open_result(1)", lenses } as Sheet, at), 'hs.draw(data, "heads", variable="offsets", lens="raw", at=["type=other word", "reach=2"])');
    const maps = { python: "maps = [hs.view(trace, 'raw')]", lenses } as Sheet;
    assert.equal(headsCall(maps, { ...scalar, name: "share", lens: "effective", n: null }), 'hs.draw(maps[1], "heads", variable="share")');
  });
});
