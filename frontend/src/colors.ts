/** Color tables of weights; the same as headscope.plotting.theme on a light background. */
import colors from "./colors.json";

export type Theme = "light" | "dark";
export type Rgb = readonly [number, number, number];

/** 256 colors of weights from 0 to the limit, or from -limit to the limit where signed, as RGBA bytes in one word. */
export interface ColorTable {
  words: Uint32Array;
  css(share: number): string;
  rgb(share: number): Rgb;
}

/** Colors of everything that is not a weight, by role. */
export interface Palette {
  theme: Theme;
  background: string;
  panel: string;
  ink: string;
  quiet: string;
  faint: string;
  masked: string;
  hatch: string;
  accent: string;
  positive: string;
  negative: string;
  classes: readonly string[];
}

const tables = new Map<string, ColorTable>();

export const palettes: Record<Theme, Palette> = {
  light: { theme: "light", ...colors.light },
  dark: { theme: "dark", ...colors.dark },
};

/** The table of a theme for signed or unsigned weights. */
export function colorTable(theme: Theme, signed: boolean): ColorTable {
  const key = `${theme} ${signed}`;
  const known = tables.get(key);
  if (known) return known;
  const made = makeTable(signed ? colors[theme].signed : colors[theme].weights);
  tables.set(key, made);
  return made;
}

function makeTable(stops: readonly string[]): ColorTable {
  const parsed = stops.map(parseHex);
  const rgb = Array.from({ length: 256 }, (_, i) => blend(parsed, i / 255));
  const words = Uint32Array.from(rgb, toWord);
  const at = (share: number): Rgb => rgb[Math.max(0, Math.min(255, Math.round(share * 255)))]!;
  return { words, rgb: at, css: (share) => `rgb(${at(share).join(" ")})` };
}

function blend(stops: readonly Rgb[], share: number): Rgb {
  const place = share * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(place));
  const [a, b] = [stops[low]!, stops[low + 1]!];
  const mix = (i: 0 | 1 | 2): number => Math.round(a[i] + (b[i] - a[i]) * (place - low));
  return [mix(0), mix(1), mix(2)];
}

/** RGBA bytes of an opaque color in one word. */
export function toWord([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Red, green and blue of `#rrggbb`. */
export function parseHex(hex: string): Rgb {
  const bits = parseInt(hex.slice(1), 16);
  return [(bits >> 16) & 255, (bits >> 8) & 255, bits & 255];
}

/** Where a weight is in a table: 0 to 1. */
export function shareOf(weight: number, limit: number, signed: boolean): number {
  const share = limit > 0 ? weight / limit : 0;
  return signed ? Math.max(0, Math.min(1, 0.5 + share / 2)) : Math.max(0, Math.min(1, Math.abs(share)));
}

/** A text color that can be read on a color. */
export function textOn([r, g, b]: Rgb): string {
  const light = [r, g, b].map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * light[0]! + 0.7152 * light[1]! + 0.0722 * light[2]! > 0.2 ? "#1a1a1a" : "#ffffff";
}
