/** The static page as a source: a JSON header, and blocks as base64 of gzip in script elements. */
import type { Header, Source } from "./types";

/** The element and the place in it of a block: `0/0/map/3/7` is the 8th part of the element `0/0/map/3`. */
export function splitName(name: string): { element: string; part: number } {
  const parts = name.split("/");
  const shared = parts[2] === "map" || parts[2] === "graph" ? parts.length > 3 : parts[1] === "visible";
  return shared ? { element: parts.slice(0, -1).join("/"), part: Number(parts.at(-1)) } : { element: name, part: 0 };
}

/** A source that reads the document it is in. */
export class PageSource implements Source {
  constructor(private readonly page: Document = document) {}

  async header(): Promise<Header> {
    const element = await this.element("headscope-header");
    return JSON.parse(element.textContent ?? "") as Header;
  }

  async block(name: string): Promise<ArrayBuffer> {
    const { element, part } = splitName(name);
    const found = await this.element(element);
    const offsets = (found.dataset["offsets"] ?? "").split(" ").map(Number);
    const [start, end] = [offsets[part], offsets[part + 1]];
    if (start === undefined || end === undefined || start === end) throw new Error(`The page holds no block ${name}.`);
    const bytes = await inflate(decodeBase64((found.textContent ?? "").slice(start, end)));
    return joinPlanes(bytes, Number(found.dataset["width"] ?? 1));
  }

  /** An element, waited for while the page is still being read. */
  private async element(id: string): Promise<HTMLElement> {
    for (let wait = 4; ; wait = Math.min(60, wait * 2)) {
      const found = this.page.getElementById(id);
      if (found && (found.nextSibling || this.complete())) return found;
      if (this.complete()) throw new Error(`The page has no element ${id}; it may have been cut off.`);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  private complete(): boolean {
    return this.page.readyState !== "loading" || this.page.getElementById("headscope-end") !== null;
  }
}

/** Bytes of base64 text. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Bytes of gzip. */
export function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Numbers of some bytes, of which the page keeps all first bytes, then all second ones, and so on. */
export function joinPlanes(planes: ArrayBuffer, width: number): ArrayBuffer {
  if (width === 1) return planes;
  const from = new Uint8Array(planes);
  const bytes = new Uint8Array(from.length);
  const count = from.length / width;
  for (let plane = 0; plane < width; plane++)
    for (let i = 0; i < count; i++) bytes[i * width + plane] = from[plane * count + i]!;
  return bytes.buffer;
}
