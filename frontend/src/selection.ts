/** Selected tokens of the state as rows or columns of a map that is shown. */
import type { Unit, Viewer } from "./types";

/** Indices of the units that hold a selected token. */
export function selectedUnits(viewer: Viewer, units: readonly Unit[]): number[] {
  const wanted = new Set(viewer.state.tokens);
  if (!wanted.size) return [];
  return units.flatMap((unit, index) => (unit.tokens.some((token) => wanted.has(token)) ? [index] : []));
}

/** Select a unit; with `add`, add it or take it away. */
export function selectUnit(viewer: Viewer, unit: Unit, side: "query" | "key", add: boolean): void {
  const same = viewer.state.side === side;
  const before = same ? viewer.state.tokens : [];
  const held = unit.tokens.some((token) => before.includes(token));
  const others = before.filter((token) => !unit.tokens.includes(token));
  const tokens = add ? (held ? others : [...others, ...unit.tokens]) : held && !others.length ? [] : [...unit.tokens];
  viewer.set({ side, tokens });
}

/** Select the unit after or before the selected one. */
export function stepUnit(viewer: Viewer, units: readonly Unit[], by: number): void {
  const at = selectedUnits(viewer, units)[0];
  const next = at === undefined ? (by > 0 ? 0 : units.length - 1) : Math.max(0, Math.min(units.length - 1, at + by));
  const unit = units[next];
  if (unit) viewer.set({ tokens: [...unit.tokens] });
}
