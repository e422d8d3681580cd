/** One number for every head: means by layer, orders, filters, counts of classes, and how numbers are printed. */
import type { Numbers, Scalar } from "./types";

/** A head by its indices, and its number. */
export interface HeadCell {
  layer: number;
  head: number;
  value: number | null;
  low: number | null;
  high: number | null;
}

/** Which heads are shown: all, a tenth of them, those whose interval leaves out 0, or a class (and maybe a layer). */
export type Filter =
  | { kind: "all" }
  | { kind: "highest" | "lowest" | "nonzero" }
  | { kind: "class"; index: number; layer: number | null };

const FILTER = /^(?:highest|lowest|nonzero|class-(\d{1,3})(?:-layer-(\d{1,4}))?)$/;

/** Whether a text is a filter as `formatFilter` writes it. */
export function isFilter(text: string): boolean {
  return FILTER.test(text);
}

/** A filter as the state holds it, with the label of its layer: "", "highest", "class-2" or "class-2-layer-5". */
export function formatFilter(filter: Filter, layers: readonly number[]): string {
  if (filter.kind === "all") return "";
  if (filter.kind !== "class") return filter.kind;
  return filter.layer === null ? `class-${filter.index}` : `class-${filter.index}-layer-${layers[filter.layer]}`;
}

/** The filter that a text stands for; all heads where a number has no such class, no interval or no such layer. */
export function parseFilter(text: string, scalar: Scalar, layers: readonly number[]): Filter {
  const [kind, index, label] = FILTER.exec(text) ?? [];
  if (kind === "nonzero") return scalar.low && scalar.high ? { kind } : { kind: "all" };
  if (kind === "highest" || kind === "lowest") return scalar.classes ? { kind: "all" } : { kind };
  const layer = label === undefined ? null : layers.indexOf(Number(label));
  if (index === undefined || !scalar.classes?.[Number(index)] || layer === -1) return { kind: "all" };
  return { kind: "class", index: Number(index), layer };
}

const MEASURED = " (measured)";

/** Scalars whose names and labels tell a measurement from the number of the text that is shown, where there are both. */
export function tellMeasured(scalars: readonly Scalar[]): Scalar[] {
  const own = new Set(scalars.filter((scalar) => scalar.n === null).map((scalar) => scalar.name));
  return scalars.map((scalar) =>
    scalar.n !== null && own.has(scalar.name) ? { ...scalar, name: `${scalar.name}${MEASURED}`, label: `${scalar.label}, measured` } : scalar,
  );
}

/** The name of a scalar in its Dataset. */
export function variableName(scalar: Scalar): string {
  return scalar.name.replace(MEASURED, "");
}

/** A scalar's label without its unit. */
export function shortLabel(scalar: Scalar): string {
  return scalar.label.replace(/\s*\([^()]*\)(?=$|, measured$)/, "");
}

/** A scalar's label, and its lens where the label does not begin with it, as that of the effective share does. */
export function fullLabel(scalar: Scalar): string {
  return scalar.lens && !scalar.label.startsWith(`${scalar.lens} `) ? `${scalar.label} · ${scalar.lens}` : scalar.label;
}

/** A scalar's label, with its lens, and how many examples were measured. */
export function longLabel(scalar: Scalar, lens = true): string {
  return [lens ? fullLabel(scalar) : scalar.label, scalar.n].filter(Boolean).join(", ");
}

/** Which cells have the largest number, and which the smallest; all are the same where both ends are. */
export function findEnds(cells: readonly HeadCell[]): { largest: HeadCell[]; smallest: HeadCell[] } {
  const known = sortCells(cells).filter((cell) => cell.value !== null);
  const at = (value: number | null | undefined): HeadCell[] => known.filter((cell) => Math.abs(cell.value! - value!) <= 1e-6 * Math.abs(value!));
  return { largest: at(known[0]?.value), smallest: at(known.at(-1)?.value) };
}

/** All heads of a table, layer after layer. */
export function listCells(scalar: Scalar): HeadCell[] {
  return scalar.values.flatMap((row, layer) =>
    row.map((value, head) => ({
      layer,
      head,
      value,
      low: scalar.low?.[layer]?.[head] ?? null,
      high: scalar.high?.[layer]?.[head] ?? null,
    })),
  );
}

/** The mean of each layer over the heads that have a number; null where none has. */
export function layerMeans(values: Numbers): (number | null)[] {
  return values.map((row) => {
    const known = row.filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  });
}

/** How many heads of each layer are of each class: layer × class. */
export function classCounts(values: Numbers, classes: number): number[][] {
  return values.map((row) => {
    const counts = new Array<number>(classes).fill(0);
    for (const value of row) if (value !== null && value in counts) counts[value]!++;
    return counts;
  });
}

/** Cells with the largest number first; those without a number are last, and equal ones keep their order. */
export function sortCells(cells: readonly HeadCell[]): HeadCell[] {
  return [...cells].sort((a, b) => (a.value === null ? 1 : 0) - (b.value === null ? 1 : 0) || (b.value ?? 0) - (a.value ?? 0));
}

/** The heads of a row in the order of their numbers, as indices; without sorting as they come. */
export function rowOrder(row: readonly (number | null)[], sorted: boolean): number[] {
  const cells = row.map((value, head) => ({ layer: 0, head, value, low: null, high: null }));
  return (sorted ? sortCells(cells) : cells).map((cell) => cell.head);
}

/** A function that says whether a cell passes a filter. */
export function makeFilter(filter: Filter, scalar: Scalar): (cell: HeadCell) => boolean {
  if (filter.kind === "all") return () => true;
  if (filter.kind === "class")
    return (cell) => cell.value === filter.index && (filter.layer === null || filter.layer === cell.layer);
  if (filter.kind === "nonzero")
    return (cell) => cell.low !== null && cell.high !== null && (cell.low > 0 || cell.high < 0);
  const known = sortCells(listCells(scalar)).filter((cell) => cell.value !== null);
  const count = Math.max(1, Math.round(known.length / 10));
  const kept = filter.kind === "highest" ? known.slice(0, count) : known.slice(-count);
  const places = new Set(kept.map((cell) => `${cell.layer} ${cell.head}`));
  return (cell) => places.has(`${cell.layer} ${cell.head}`);
}

/** The ends of a color scale: from the smallest to the largest number, or symmetric around 0 where signs differ. */
export function valueRange(values: Numbers): { low: number; high: number; signed: boolean } {
  const known = values.flat().filter((value) => value !== null && Number.isFinite(value)) as number[];
  if (!known.length) return { low: 0, high: 1, signed: false };
  const [low, high] = [Math.min(...known), Math.max(...known)];
  if (low < 0) {
    const largest = Math.max(-low, high) || 1;
    return { low: -largest, high: largest, signed: true };
  }
  return { low: low < high ? low : 0, high: high > 0 ? high : 1, signed: false };
}

/** Numbers of a table in one format: 12, 0.12, .012 or 1.2e-5, by the largest of them, as the figure `heads` does. */
export function numberFormat(values: Numbers): (value: number | null) => string {
  const known = values.flat().filter((value) => value !== null) as number[];
  const largest = Math.max(0, ...known.map(Math.abs));
  if (known.every(Number.isInteger) || largest >= 1000) return written((value) => value.toFixed(0));
  if (largest >= 100) return written((value) => value.toFixed(1));
  if (largest >= 0.1) return written((value) => value.toFixed(2));
  if (largest >= 0.01) return written((value) => value.toFixed(3).replace(/^(-?)0\./, "$1."));
  return written((value) => value.toExponential(1));
}

function written(format: (value: number) => string): (value: number | null) => string {
  return (value) => {
    if (value === null) return "–";
    const text = format(value);
    return text.startsWith("-") ? (/[1-9]/.test(text) ? `−${text.slice(1)}` : text.slice(1)) : text;
  };
}

/** A letter for each class, unlike those of the others: its first one that is free. */
export function classLetters(classes: readonly string[]): string[] {
  const used = new Set<string>();
  return classes.map((name, index) => {
    const letters = [...name.toUpperCase().replace(/[^A-Z]/g, ""), ..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
    const words = name.split(/[^A-Za-z]+/).filter(Boolean);
    const initials = words.length > 1 ? words.at(-1)![0]!.toUpperCase() : "";
    const letter = [letters[0]!, initials, ...letters].find((candidate) => candidate && !used.has(candidate)) ?? String(index);
    used.add(letter);
    return letter;
  });
}
