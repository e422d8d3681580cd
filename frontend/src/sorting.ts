/** Rows of a table in the order of one column. */
type Cell = string | number | null;

/** Sort rows by a column: numbers by size, also those written as text ("0.52 (0.49–0.55)", "−3", "12 %"), text by letter. */
export function sortRows<Row extends readonly Cell[]>(rows: readonly Row[], column: number, descending: boolean): Row[] {
  const keys = rows.map((row) => sortKey(row[column] ?? null));
  const numeric = keys.every((key) => key === null || typeof key === "number");
  const order = rows.map((_, index) => index);
  order.sort((a, b) => compare(keys[a]!, keys[b]!, rows[a]![column] ?? null, rows[b]![column] ?? null, numeric, descending) || a - b);
  return order.map((index) => rows[index]!);
}

/** The number that a cell begins with, its text, or null where it is empty. */
export function sortKey(cell: Cell): string | number | null {
  if (cell === null || cell === "" || cell === "–") return null;
  if (typeof cell === "number") return Number.isFinite(cell) ? cell : null;
  const found = /^[<>≤≥~≈]?\s*([+\-−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+\-−]?\d+)?)(?![\p{L}\d])/iu.exec(cell);
  return found ? Number(found[1]!.replaceAll("−", "-").replaceAll(",", "")) : cell;
}

function compare(a: string | number | null, b: string | number | null, one: Cell, other: Cell, numeric: boolean, descending: boolean): number {
  if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
  const order = numeric ? (a as number) - (b as number) : String(one).localeCompare(String(other), "en", { numeric: true });
  return descending ? -order : order;
}

const NUMBER = "[+\\-−]?(?:\\d[\\d,]*\\.?\\d*|\\.\\d+)(?:e[+\\-−]?\\d+)?";
const PLAIN = new RegExp(`^(${NUMBER})$`, "i");
const INTERVAL = new RegExp(`^(${NUMBER}) \\[(${NUMBER}), (${NUMBER})\\]$`, "i");

/** A table for computers: columns of numbers as numbers, and "0.52 [0.49, 0.55]" as three columns. */
export function splitNumbers(columns: readonly string[], rows: readonly (readonly Cell[])[]): { columns: string[]; rows: Cell[][] } {
  const parts = columns.map((name, column) => splitColumn(name, rows.map((row) => row[column] ?? null)));
  return { columns: parts.flatMap((part) => part.names), rows: rows.map((_, row) => parts.flatMap((part) => part.cells[row]!)) };
}

function splitColumn(name: string, cells: readonly Cell[]): { names: string[]; cells: Cell[][] } {
  for (const [pattern, names] of [[PLAIN, [name]], [INTERVAL, [name, `${name} low`, `${name} high`]]] as const) {
    const found = cells.map((cell) => (sortKey(cell) === null ? names.map(() => null) : readNumbers(cell, pattern)));
    if (found.every((numbers) => numbers !== null)) return { names: [...names], cells: found };
  }
  return { names: [name], cells: cells.map((cell) => [cell]) };
}

function readNumbers(cell: Cell, pattern: RegExp): number[] | null {
  if (typeof cell === "number") return pattern === PLAIN ? [cell] : null;
  const found = pattern.exec(cell ?? "");
  return found && found.slice(1).map((text) => Number(text.replaceAll("−", "-").replaceAll(",", "")));
}
