/** Axes of the scatter: from numbers to pixels, ticks, and neighbors. */
import { formatNumber } from "../format";
import type { Scalar } from "../types";

export interface Axis {
  low: number;
  high: number;
  log: boolean;
  /** Where a number is between the ends of the axis: 0 to 1. */
  at(value: number): number;
  ticks: { value: number; text: string }[];
}

/** A head as a point. */
export interface Point {
  name: string;
  layer: number;
  head: number;
  x: number;
  y: number;
  xLow: number | null;
  xHigh: number | null;
  yLow: number | null;
  yHigh: number | null;
}

/** Heads that have both numbers. */
export function listPoints(x: Scalar, y: Scalar, layers: readonly number[], heads: readonly number[]): Point[] {
  return layers.flatMap((layer, i) =>
    heads.flatMap((head, j) => {
      const [px, py] = [x.values[i]?.[j], y.values[i]?.[j]];
      if (px === null || px === undefined || py === null || py === undefined) return [];
      const ends = { xLow: x.low?.[i]?.[j] ?? null, xHigh: x.high?.[i]?.[j] ?? null, yLow: y.low?.[i]?.[j] ?? null, yHigh: y.high?.[i]?.[j] ?? null };
      return [{ name: `L${layer}H${head}`, layer, head, x: px, y: py, ...ends }];
    }),
  );
}

/** Whether a number can be drawn on a logarithmic axis: all of them are positive, and they span a factor of 3. */
export function allowsLog(scalar: Scalar): boolean {
  const known = scalar.values.flat().filter((value) => value !== null) as number[];
  return known.length > 1 && Math.min(...known) > 0 && Math.max(...known) / Math.min(...known) >= 3;
}

/** The axis of some numbers and the ends of their intervals. */
export function makeAxis(values: readonly number[], log: boolean, count = 5): Axis {
  const finite = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  const [least, most] = finite.length ? [Math.min(...finite), Math.max(...finite)] : [0, 1];
  const go = (value: number): number => (log ? Math.log10(value) : value);
  const margin = (go(most) - go(least) || Math.abs(go(most)) || 1) * 0.06;
  const [start, end] = [go(least) - margin, go(most) + margin];
  const back = (value: number): number => (log ? 10 ** value : value);
  const axis = { low: back(start), high: back(end), log, at: (value: number) => (go(value) - start) / (end - start) };
  const places = log ? logTicks(axis.low, axis.high) : linearTicks(axis.low, axis.high, count);
  const write = log ? (value: number) => formatNumber(value, 2) : decimalsOf(places);
  return { ...axis, ticks: places.map((value) => ({ value, text: write(value) })) };
}

/** Writes all ticks with as many decimals as the finest of them needs. */
function decimalsOf(places: readonly number[]): (value: number) => string {
  const needed = places.map((value) => /\.(\d*)/.exec(String(value))?.[1]!.length ?? 0);
  const [decimals, most] = [Math.max(0, ...needed), Math.max(0, ...places.map(Math.abs))];
  if (decimals > 4 || most >= 1e4) return (value) => formatNumber(value, 3);
  return (value) => value.toFixed(decimals).replace("-", "−");
}

/** Round numbers between two ends. */
export function linearTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999)!;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(Number((i * step).toPrecision(10)));
  return ticks;
}

/** 1, 2 and 5 times powers of ten between two ends; powers alone where these are many. */
export function logTicks(low: number, high: number): number[] {
  const ticks: number[] = [];
  const wide = Math.log10(high / low) > 3;
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of wide ? [1] : [1, 2, 5]) {
      const value = Number((factor * 10 ** power).toPrecision(6));
      if (value >= low && value <= high) ticks.push(value);
    }
  return ticks;
}

/** The nearest point in a direction: within 45° first, else the nearest one on that side; null where there is none. */
export function neighbor<P extends { px: number; py: number }>(from: P, points: readonly P[], dx: number, dy: number): P | null {
  let best: P | null = null;
  let least = Infinity;
  for (const point of points) {
    if (point === from) continue;
    const along = (point.px - from.px) * dx + (point.py - from.py) * dy;
    const across = Math.abs((point.px - from.px) * dy) + Math.abs((point.py - from.py) * dx);
    if (along <= 0) continue;
    const cost = Math.hypot(along, across) * (across <= along ? 1 : 1 + (2 * across) / along);
    if (cost < least) [best, least] = [point, cost];
  }
  return best;
}
