/** Two sheets beside one another: whether they can be compared, and how alike their heads are. */
import type { Comparison, Header, MapData, Numbers, Sheet } from "./types";

/** The comparison of two sheets, in either order, under a lens; null where there is none. */
export function findComparison(header: Header, first: number, second: number, lens: string): Comparison | null {
  const ends = (one: Comparison): boolean =>
    (one.first === first && one.second === second) || (one.first === second && one.second === first);
  return header.comparisons.find((one) => one.lens === lens && ends(one)) ?? null;
}

/** The lenses that both sheets have, those with one map per head first. */
export function sharedLenses(first: Sheet, second: Sheet): string[] {
  const others = new Set(second.lenses.map((lens) => lens.name));
  const shared = first.lenses.filter((lens) => others.has(lens.name));
  return [...shared.filter((lens) => !lens.merged), ...shared.filter((lens) => lens.merged)].map((lens) => lens.name);
}

/** Whether both sheets have the same tokens on both sides. */
export function sameTokens(first: Sheet, second: Sheet): boolean {
  return equal(first.queries.text, second.queries.text) && equal((first.keys ?? first.queries).text, (second.keys ?? second.queries).text);
}

function equal(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

/** Why two sheets have no cosine per head, in a sentence; null where nothing is in the way. */
export function whyNotCompared(header: Header, first: number, second: number, lens: string): string | null {
  const [one, other] = [header.sheets[first]!, header.sheets[second]!];
  if (first === second) return "Both sides show the same sheet. Choose another one as the second.";
  if (!sharedLenses(one, other).length) return "The two have no lens in common, so their maps cannot be compared.";
  if (!equal(one.layers.map(String), other.layers.map(String)) || !equal(one.heads.map(String), other.heads.map(String)))
    return `The two have different heads (${shape(one)} and ${shape(other)}), so there is no cosine of every head.`;
  if (!sameTokens(one, other)) return `${differentTokens(one, other)} There is no cosine per head and no difference.`;
  if (!findComparison(header, first, second, lens)) return `No cosine per head was computed for the lens ${lens}.`;
  return null;
}

/** A sentence about how the tokens of two sheets differ. */
export function differentTokens(first: Sheet, second: Sheet): string {
  const alike = equal(first.queries.text, second.queries.text); // then the keys differ
  const counts = [first, second].map((sheet) => (alike ? (sheet.keys ?? sheet.queries) : sheet.queries).text.length);
  const numbers = counts[0] === counts[1] ? `both have ${counts[0]}, but not the same` : `${counts[0]} and ${counts[1]}`;
  return `The two have different ${alike ? "keys" : "tokens"} (${numbers}), so a cell of one map has no counterpart in the other.`;
}

function shape(sheet: Sheet): string {
  return `${sheet.layers.length} × ${sheet.heads.length}`;
}

/** The head with the smallest cosine, as indices, and how many of how many share it; null where there is no number. */
export function leastAlike(values: Numbers): { layer: number; head: number; value: number; ties: number; of: number } | null {
  const known = values.flatMap((row, layer) => row.flatMap((value, head) => (value === null ? [] : [{ layer, head, value }])));
  if (!known.length) return null;
  const least = known.reduce((best, cell) => (cell.value < best.value ? cell : best));
  return { ...least, ties: known.filter((cell) => cell.value <= least.value + 1e-6).length, of: known.length };
}

/** The first map minus the second, cell by cell. */
export function difference(first: Pick<MapData, "weights">, second: Pick<MapData, "weights">): Float32Array {
  return first.weights.map((weight, index) => weight - second.weights[index]!);
}

/** The cosine of two maps over the cells that both can see. */
export function cosine(first: Float32Array, second: Float32Array): number {
  let [dot, one, other] = [0, 0, 0];
  for (let i = 0; i < first.length; i++) {
    const [a, b] = [first[i]!, second[i]!];
    if (a !== a || b !== b) continue;
    dot += a * b;
    one += a * a;
    other += b * b;
  }
  return one && other ? dot / Math.sqrt(one * other) : NaN;
}

/** The name of a sheet among all: its model, its site where sites differ, and its text where these are the same. */
export function sheetName(header: Header, index: number): string {
  const { sheets } = header;
  const sheet = sheets[index]!;
  const parts = [sheet.model.split("/").at(-1)!];
  if (sheet.site !== "self" || sheets.some((other) => other.model === sheet.model && other.site !== sheet.site)) parts.push(sheet.site);
  const alike = sheets.filter((other) => other.model === sheet.model && other.site === sheet.site);
  if (alike.length < 2) return parts.join(" · ");
  const texts = new Set(alike.map((other) => other.text));
  parts.push(texts.size < alike.length ? String(alike.indexOf(sheet) + 1) : sheet.text.length > 40 ? `${sheet.text.slice(0, 39)}…` : sheet.text);
  return parts.join(" · ");
}
