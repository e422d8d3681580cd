/** Numbers and names as they are written. */
import { errorOf } from "./decode";
import type { MapData, Scalar } from "./types";

/** A number with two or three significant digits, as a researcher would write it; whole numbers without decimals. */
export function formatNumber(value: number | null, digits = 3): string {
  if (value === null || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = Number.isInteger(size) && size < 1000 ? String(size) : size >= 1000 || size < 1e-4 ? shortExponent(size, digits) : plain(size, digits);
  return value < 0 ? `−${text}` : text;
}

function plain(size: number, digits: number): string {
  const decimals = Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(size))));
  return size < 1 ? size.toFixed(Math.min(decimals, 4)) : size.toFixed(Math.min(decimals, digits - 1));
}

function shortExponent(size: number, digits: number): string {
  if (size >= 1000 && size < 1e6) return Math.round(size).toLocaleString("en-US");
  const [mantissa, exponent] = size.toExponential(Math.max(0, digits - 2)).split("e");
  return `${mantissa}e${Number(exponent)}`;
}

/** A weight with the error of its codec: "0.123 ± 0.002", or without where there is practically none. */
export function formatWeight(weight: number, map: Pick<MapData, "codec" | "signed" | "scale">, terms = 1): string {
  if (Number.isNaN(weight)) return "masked";
  return withError(weight, map.codec === "sqrt8" ? terms * errorOf(weight, map.codec, map.signed, map.scale) : 0);
}

/** The error of a cell that is made of cells of some maps, each a sum of so many terms; 0 where practically none. */
export function errorAt(maps: readonly MapData[], at: number, terms: number): number {
  const bytes = maps.filter((map) => map.codec === "sqrt8");
  return bytes.reduce((sum, map) => sum + terms * errorOf(map.weights[at]!, map.codec, map.signed, map.scale), 0);
}

/** A sentence about the largest error of numbers that are each made of some maps; empty where there is practically none. */
export function noteError(groups: readonly (readonly MapData[])[]): string {
  const bound = (map: MapData): number => (map.codec === "sqrt8" ? errorOf(map.scale, map.codec, map.signed, map.scale) * Math.max(1, ...map.keys.map((key) => key.tokens.length)) : 0);
  const largest = Math.max(0, ...groups.map((maps) => maps.reduce((sum, map) => sum + bound(map), 0)));
  return largest ? ` Sent in one byte a weight: errors are at most ${formatNumber(largest, 2)}.` : "";
}

/** "0.123 ± 0.002", or without an error where there is practically none. */
export function withError(weight: number, error: number): string {
  if (!(error >= 1e-6 * Math.max(1, Math.abs(weight)))) return formatNumber(weight);
  const decimals = Math.max(1, Math.min(6, Math.ceil(-Math.log10(error))));
  const bound = Math.ceil(error * 10 ** decimals) / 10 ** decimals;
  return `${weight < 0 ? "−" : ""}${Math.abs(weight).toFixed(decimals)} ± ${bound.toFixed(decimals)}`;
}

/** Where the numbers of a color bar stand, and what they are; ends say where cells are beyond them. */
export function barMarks(limit: number, signed: boolean, beyond: Beyond): [number, string][] {
  const [low, high] = [formatNumber(signed ? -limit : 0, 2), formatNumber(limit, 2)];
  const ends: [number, string][] = [[0, signed && beyond.below ? `≤ ${low}` : low], [1, beyond.above ? `≥ ${high}` : high]];
  return signed ? [ends[0]!, [0.5, "0"], ends[1]!] : ends;
}

/** Whether weights are beyond the ends of their colors. */
export interface Beyond {
  below: boolean;
  above: boolean;
}

/** Whether a map's weights are beyond a limit. */
export function findBeyond(weights: Float32Array, limit: number): Beyond {
  const beyond = { below: false, above: false };
  for (const weight of weights) {
    if (weight > 1.001 * limit) beyond.above = true;
    else if (weight < -1.001 * limit) beyond.below = true;
  }
  return beyond;
}

/** A share as a percentage without false precision: "< 1 %", "15 %", "100 %" only where it is. */
export function formatPercent(share: number): string {
  const percent = 100 * share;
  if (percent > 0 && percent < 1) return "< 1 %";
  if (percent > 99 && percent < 99.95) return `${percent.toFixed(1)} %`;
  return `${Math.round(percent)} %`;
}

/** A scalar's value: the name of its class, or a number. */
export function formatScalar(scalar: Scalar, value: number | null, digits = 3): string {
  if (value === null) return "–";
  return scalar.classes ? (scalar.classes[value] ?? "–") : formatNumber(value, digits);
}

/** A sentence whose numbers keep their unit, and differences their sign, on one line. */
export function keepTogether(text: string): string {
  return text.replace(/ %/g, "\u00a0%").replace(/\b([nN]) = (?=\d)/g, "$1\u00a0=\u00a0").replace(/ − /g, "\u00a0−\u00a0");
}

/** A text with a large first letter, as at the start of a sentence. */
export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A token in quotes, short enough for a sentence. */
export function quote(text: string, longest = 28): string {
  const shown = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  return `“${shown.replace(/^·/, "")}”`;
}

/** "a, b and c". */
export function joinWords(words: readonly string[], last = "and"): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}

/** A count with its noun: "1 token", "14 tokens". */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

/** One line of CSV; fields with commas, quotes or line breaks are quoted, and formulas are made text. */
export function csvLine(fields: readonly (string | number | null)[]): string {
  return fields
    .map((field) => {
      if (field === null) return "";
      if (typeof field === "number") return Number.isFinite(field) ? String(field) : "";
      const text = /^[=+\-@\t\r]./s.test(field) ? `'${field}` : field;
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    })
    .join(",");
}
