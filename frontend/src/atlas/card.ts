/** One example of a head: its text shaded by weights, a small picture of its map, and a reading of the chosen token. */
import { fitCanvas, fitText, FONT, pixelRatio, tableIndex, weightsImage } from "../canvas";
import { type ColorTable, type Palette, textOn } from "../colors";
import { make, setAttributes } from "../dom";
import { formatNumber, formatPercent, quote } from "../format";
import { type Box, hintMore, layoutStrip } from "../strip";
import type { Svg } from "../svg";
import { type Link, linksOf, listLinks, pictureLimit, pool, shadeLimit, spread } from "./rows";
import type { AtlasExample, AtlasLens } from "./types";

const LINE = 24;
const BOX = 20;
const PAD = 4;
const PICTURE = 120;
const CELL = 2;
const GAP = 28; // between text and picture, with room for a scroll bar
const SHOWN = 4;

/** What all cards share. */
export interface CardLook {
  palette: Palette;
  colors(signed: boolean): ColorTable;
  lens: number;
  lenses: readonly AtlasLens[];
  side: "to" | "from";
  unit: number;
}

/** Who is told about what happens on a card. */
export interface CardEvents {
  hover(token: number): void;
  choose(token: number): void;
}

/** An element for one example. */
export class Card {
  readonly element = make("article", "hs-card");
  private readonly text = make("canvas", "hs-text", { tabindex: 0, role: "group" });
  private readonly frame = make("div", "hs-card-text", {}, this.text);
  private readonly picture = make("canvas", "hs-card-map", { role: "img" });
  private readonly reading = make("p", "hs-card-reading");
  private boxes: Box[] = [];
  private links: Link[] = [];
  private width = 0;
  private cursor = -1;
  private linked = -1;
  private drawn = "";

  constructor(readonly example: AtlasExample, rank: number, activity: string, events: CardEvents) {
    const label = example.label_name ?? example.label ?? null;
    const facts = [`${activity} ${formatNumber(example.activity)}`, `above ${formatPercent(example.above)} of examples`, ...(label === null ? [] : [`label ${label}`])];
    const title = make("h4", "hs-card-title", {}, `${rank}. ${example.id} `, make("span", "", {}, `· ${facts.join(" · ")}`));
    this.element.append(title, make("div", "hs-card-body", {}, this.frame, this.picture), this.reading);
    this.text.setAttribute("aria-label", `Example ${example.id}, arrow keys choose a token: ${this.shown.text.join(" ")}`);
    setAttributes(this.picture, { "aria-label": `Map of example ${example.id}`, title: "The map: rows attend to columns" });
    this.frame.addEventListener("scroll", () => hintMore(this.frame));
    this.text.addEventListener("pointermove", (event) => events.hover(this.hit(event)));
    this.text.addEventListener("pointerleave", () => events.hover(-1));
    this.text.addEventListener("click", (event) => events.choose(this.hit(event)));
    this.text.addEventListener("keydown", (event) => this.keydown(event, events));
  }

  /** Draw again where anything changed: `token` is the one that is chosen or under the pointer, -1 = none. */
  draw(look: CardLook, token: number, width: number): void {
    const key = [look.palette.theme, look.lens, look.side, pixelRatio(), token, width].join();
    if (key === this.drawn) return;
    this.drawn = key;
    this.cursor = token;
    const map = this.example.maps[look.lens] ?? null;
    const lens = look.lenses[look.lens]!;
    if (this.linked !== look.lens) [this.links, this.linked] = [map ? listLinks(map, look.unit) : [], look.lens];
    const { shown } = this;
    const weights = this.shade(look, token);
    const limit = shadeLimit(weights, shown.special);
    const fresh = this.layout(shown.text, Math.max(160, width - PICTURE - GAP));
    this.drawText(shown.text, weights, limit, lens.signed, look, token);
    if (fresh) hintMore(this.frame);
    this.drawPicture(look, lens.signed);
    setAttributes(this.reading, { role: token < 0 ? null : "status" });
    this.reading.textContent = !map ? "This map is not a number." : token < 0 ? this.describe(look, limit) : this.read(look, token);
  }

  /** The kept weights as rows of a table. */
  rows(look: CardLook): (string | number)[][] {
    const keys = this.example.keys ?? this.example.queries;
    const map = this.example.maps[look.lens];
    return (map ? listLinks(map, look.unit) : []).map(({ query, key, weight }) => [
      this.example.group, this.example.id, this.example.activity, query, this.example.queries.text[query]!, key, keys.text[key]!, weight,
    ]);
  }

  /** Add the text to a picture of vectors; returns its height. */
  svg(svg: Svg, x: number, y: number, look: CardLook, token: number): number {
    const { shown } = this;
    const weights = this.shade(look, token);
    const lens = look.lenses[look.lens]!;
    const limit = shadeLimit(weights, shown.special);
    const table = look.colors(lens.signed);
    svg.text(x, y + 12, `${this.example.id} · activity ${formatNumber(this.example.activity)}`, { fill: look.palette.ink, "font-weight": 600 });
    this.boxes.forEach((box, index) => {
      const color = table.rgb(tableIndex(weights[index] ?? 0, limit, lens.signed) / 255);
      const top = y + 20 + box.line * LINE;
      svg.rect(x + box.x, top, box.width, BOX, { fill: `rgb(${color.join(",")})`, rx: 3, ...(index === token ? { stroke: look.palette.ink, "stroke-width": 2 } : {}) });
      svg.text(x + box.x + PAD, top + 14, visible(shown.text[index]!), { fill: textOn(color) });
    });
    return 20 + this.height();
  }

  height(): number {
    return ((this.boxes.at(-1)?.line ?? 0) + 1) * LINE;
  }

  private get tokens(): number {
    return this.shown.text.length;
  }

  /** The tokens that are shown: keys. In cross-attention a chosen token is a key, too, and is asked what attends to it. */
  private get shown(): { text: string[]; special: number[] } {
    return this.example.keys ?? this.example.queries;
  }

  private sideOf(look: CardLook): "to" | "from" {
    return this.example.keys === null ? look.side : "from";
  }

  private shade(look: CardLook, token: number): Float32Array {
    const map = this.example.maps[look.lens];
    if (!map) return new Float32Array(this.tokens);
    if (token < 0 || this.example.keys !== null) return Float32Array.from(map.received);
    return spread(linksOf(this.links, token, look.side), look.side, this.tokens);
  }

  /** Break the text into lines of a width; false where that was done already. */
  private layout(tokens: readonly string[], width: number): boolean {
    if (width === this.width) return false;
    this.width = width;
    const context = this.text.getContext("2d")!;
    context.font = `13px ${FONT}`;
    this.boxes = layoutStrip(tokens.map((token) => Math.max(10, context.measureText(visible(token)).width + 2 * PAD)), width, 2);
    return true;
  }

  private drawText(tokens: readonly string[], weights: Float32Array, limit: number, signed: boolean, look: CardLook, token: number): void {
    const context = fitCanvas(this.text, this.width, this.height());
    const table = look.colors(signed);
    context.font = `13px ${FONT}`;
    context.textBaseline = "middle";
    tokens.forEach((text, index) => {
      const box = this.boxes[index]!;
      const y = box.line * LINE + 2;
      const color = table.rgb(tableIndex(weights[index] ?? 0, limit, signed) / 255);
      context.fillStyle = `rgb(${color.join(" ")})`;
      context.beginPath();
      context.roundRect(box.x, y, box.width, BOX, 3);
      context.fill();
      context.fillStyle = textOn(color);
      context.fillText(fitText(context, visible(text), box.width - 2 * PAD + 1), box.x + PAD, y + BOX / 2 + 0.5);
      if (index !== token) return;
      context.strokeStyle = look.palette.negative;
      context.lineWidth = 2;
      context.stroke();
    });
  }

  private drawPicture(look: CardLook, signed: boolean): void {
    const small = pool(this.links, this.example.queries.text.length, this.tokens, PICTURE / CELL);
    const limit = pictureLimit(small.weights);
    const image = weightsImage(small.weights, small.rows, small.columns, look.colors(signed), limit, signed);
    const context = fitCanvas(this.picture, PICTURE, PICTURE);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, PICTURE, PICTURE);
    context.strokeStyle = look.palette.faint;
    context.strokeRect(0.5, 0.5, PICTURE - 1, PICTURE - 1);
  }

  private read(look: CardLook, token: number): string {
    const map = this.example.maps[look.lens]!;
    const to = this.sideOf(look) === "to";
    const own = this.shown.text[token];
    const other = to ? this.shown.text : this.example.queries.text;
    const links = linksOf(this.links, token, this.sideOf(look));
    const listed = links.slice(0, SHOWN).map((link) => `${quote(other[to ? link.key : link.query]!)} ${formatNumber(link.weight)}`);
    const verb = to ? "attends to" : "is attended to by";
    const left = to ? `; left out ${formatNumber((map.left[token] ?? 0) * look.unit)}` : "";
    const more = links.length > SHOWN ? ` and ${links.length - SHOWN} more` : "";
    return `${quote(own ?? "")} ${verb} ${listed.length ? listed.join(", ") : "nothing that was kept"}${more}${left}.`;
  }

  private describe(look: CardLook, limit: number): string {
    const map = this.example.maps[look.lens]!;
    return `Shading: mean weight that a token gets, up to ${formatNumber(limit)}. Left out of the map: ${formatPercent(map.leftShare)} of |weight|.`;
  }

  private hit(event: MouseEvent): number {
    const frame = this.text.getBoundingClientRect();
    const [x, line] = [event.clientX - frame.left, Math.floor((event.clientY - frame.top) / LINE)];
    return this.boxes.findIndex((box) => box.line === line && x >= box.x - 1 && x < box.x + box.width + 1);
  }

  private keydown(event: KeyboardEvent, events: CardEvents): void {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };
    const step = steps[event.key];
    if (event.key === "Escape" && this.cursor >= 0) events.choose(-1);
    else if (event.key === "Home") this.choose(0, events);
    else if (event.key === "End") this.choose(this.tokens - 1, events);
    else if (step) this.choose(Math.max(0, Math.min(this.tokens - 1, this.cursor + step)), events);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Choose a token, and bring it into sight where the text scrolls. */
  private choose(token: number, events: CardEvents): void {
    events.choose(token);
    const top = (this.boxes[token]?.line ?? 0) * LINE;
    const { scrollTop, clientHeight } = this.frame;
    if (top < scrollTop || top + LINE > scrollTop + clientHeight) this.frame.scrollTop = top - clientHeight / 2;
  }
}

function visible(token: string): string {
  return token.replace(/^·/, "") || token;
}
