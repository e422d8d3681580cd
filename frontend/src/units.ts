/** Which tokens a picture shows, and the weights between them: merged words, hidden special tokens, a window. */
import type { MapData, Sheet, State, Tokens, Unit } from "./types";

type Choice = Pick<State, "words" | "special" | "start" | "count">;

/** All units of a side before anything is hidden: each token, or each word where `words` is set. */
export function allUnits(tokens: Tokens, words: boolean): Unit[] {
  const special = new Set(tokens.special);
  const byWord = new Map<number, Unit>();
  const units: Unit[] = [];
  tokens.text.forEach((text, index) => {
    const word = words ? (tokens.word?.[index] ?? -1) : -1;
    const known = byWord.get(word);
    if (known) return void known.tokens.push(index);
    const unit: Unit = { text, tokens: [index], special: special.has(index) };
    if (word >= 0) byWord.set(word, unit);
    units.push(unit);
  });
  for (const unit of byWord.values()) unit.text = joinPieces(unit.tokens.map((index) => tokens.text[index]!));
  return units;
}

/** A word as its tokens spell it, without the markers of word starts (·) and continuations (##). */
export function joinPieces(pieces: readonly string[]): string {
  const text = pieces.map((piece, index) => (index ? piece.replace(/^##/, "") : piece)).join("");
  const whole = pieces.length > 1 ? text.replace(/(.)\(1\/(\d)\)(?:\1\(\d\/\2\))*/gu, "$1") : text;
  return whole.replace(/^·+/, "") || pieces[0]!;
}

/** Whether a unit's first token is inside of the window. */
function inWindow(unit: Unit, choice: Choice, length: number): boolean {
  if (!choice.count) return true;
  const start = Math.min(choice.start, Math.max(0, length - choice.count));
  return unit.tokens[0]! >= start && unit.tokens[0]! < start + choice.count;
}

/** The units of a side that are shown. */
export function shownUnits(tokens: Tokens, choice: Choice): Unit[] {
  const units = allUnits(tokens, choice.words);
  return units.filter((unit) => (choice.special || !unit.special) && inWindow(unit, choice, tokens.text.length));
}

/** The map of a sheet's tokens as shown: to a word, weights are summed; from a word, they are averaged. */
export function reduceMap(raw: MapData, sheet: Sheet, choice: Choice): MapData {
  if (!choice.words && choice.special && !choice.count) return raw;
  const keyTokens = sheet.keys ?? sheet.queries;
  const queries = shownUnits(sheet.queries, choice);
  const keys = shownUnits(keyTokens, choice);
  const weights = new Float32Array(queries.length * keys.length);
  queries.forEach((query, row) => {
    keys.forEach((key, column) => {
      weights[row * keys.length + column] = mergeCell(raw, query.tokens, key.tokens);
    });
  });
  const hidden = hiddenMass(raw, queries, keyTokens, choice);
  const missing = raw.missing ?? (weights.length ? null : whyEmpty(choice));
  return { ...raw, rows: queries.length, columns: keys.length, weights, queries, keys, hidden, missing };
}

function whyEmpty({ count, special }: Choice): string {
  if (special) return "No token is in the window. Choose another one.";
  const why = count ? "the window has special tokens only, and these are hidden" : "all are special, and these are hidden";
  return `No token is left: ${why}. Show special tokens${count ? ", or choose another window" : ""}.`;
}

/** Sum over the key tokens that can be seen, mean over the query tokens; NaN where none can be seen. */
function mergeCell(raw: MapData, queries: readonly number[], keys: readonly number[]): number {
  let total = 0;
  let seen = false;
  for (const query of queries)
    for (const key of keys) {
      const weight = raw.weights[query * raw.columns + key]!;
      if (weight !== weight) continue;
      seen = true;
      total += weight;
    }
  return seen ? total / queries.length : NaN;
}

/** Of each shown row, the sums of |weight| to keys that are shown, to hidden special tokens, and to keys outside of the window. */
function hiddenMass(raw: MapData, queries: readonly Unit[], tokens: Tokens, choice: Choice): MapData["hidden"] {
  const kind = new Uint8Array(raw.columns);
  for (const unit of allUnits(tokens, choice.words)) {
    const code = !choice.special && unit.special ? 1 : inWindow(unit, choice, tokens.text.length) ? 0 : 2;
    for (const token of unit.tokens) kind[token] = code;
  }
  return queries.map((unit) => {
    const sums: [number, number, number] = [0, 0, 0];
    for (const query of unit.tokens)
      for (let key = 0; key < raw.columns; key++) {
        const weight = raw.weights[query * raw.columns + key]!;
        if (weight === weight) sums[kind[key] as 0 | 1 | 2] += Math.abs(weight);
      }
    return sums;
  });
}

/** Of the |weight| of some rows, or of all that are shown, the shares that go to hidden special tokens and to keys outside of the window. */
export function hiddenShares(map: Pick<MapData, "hidden">, rows: readonly number[] = []): { special: number; outside: number } {
  const chosen = rows.length ? rows.flatMap((row) => (map.hidden[row] ? [map.hidden[row]] : [])) : map.hidden;
  const [shown, special, outside] = [0, 1, 2].map((kind) => chosen.reduce((sum, row) => sum + row[kind]!, 0)) as [number, number, number];
  const total = shown + special + outside;
  return total > 0 ? { special: special / total, outside: outside / total } : { special: 0, outside: 0 };
}
