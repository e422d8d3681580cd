import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeBase64, inflate, joinPlanes, splitName } from "../src/page";

function bytes(...values: number[]): ArrayBuffer {
  return Uint8Array.from(values).buffer as ArrayBuffer;
}

describe("blocks of a page", () => {
  it("are found in the element that they share", () => {
    assert.deepEqual(splitName("0/1/map/3/7"), { element: "0/1/map/3", part: 7 });
    assert.deepEqual(splitName("0/visible/2"), { element: "0/visible", part: 2 });
    assert.deepEqual(splitName("0/1/thumbs"), { element: "0/1/thumbs", part: 0 });
  });

  it("are base64 of gzip", async () => {
    const stream = new Blob([bytes(1, 2, 255)]).stream().pipeThrough(new CompressionStream("gzip"));
    const packed = new Uint8Array(await new Response(stream).arrayBuffer());
    const text = btoa(String.fromCharCode(...packed));
    assert.deepEqual([...new Uint8Array(await inflate(decodeBase64(text)))], [1, 2, 255]);
  });

  it("have the bytes of a number side by side again", () => {
    assert.deepEqual([...new Uint8Array(joinPlanes(bytes(1, 3, 5, 2, 4, 6), 2))], [1, 2, 3, 4, 5, 6]);
    assert.deepEqual([...new Uint8Array(joinPlanes(bytes(1, 5, 2, 6, 3, 7, 4, 8), 4))], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert.deepEqual([...new Uint8Array(joinPlanes(bytes(1, 2, 3), 1))], [1, 2, 3]);
  });
});
