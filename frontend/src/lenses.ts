/** Which lenses can be subtracted, and which from which. */
import type { Viewer } from "./types";

/** Lenses whose weights are not shares of attention: their maps have a scale of their own, and no difference. */
const OTHER_UNITS = ["norm", "gradient"];

/** Whether two lenses have weights that can be subtracted. */
export function comparable(first: string, second: string): boolean {
  const unit = (name: string): string => OTHER_UNITS.find((other) => name.startsWith(other)) ?? "attention";
  return unit(first) === unit(second);
}

/** Why the difference of two lenses is not shown; empty where it is. */
export function whyNoDifference(first: string, second: string): string {
  return comparable(first, second) ? "" : `${first} and ${second} have different units, so their difference means nothing. Choose another lens.`;
}

/** The lens that one is compared with: the chosen other, else raw, else the first that can be subtracted. */
export function otherLens(viewer: Viewer, lens: string = viewer.state.lens): string {
  const { other } = viewer.state;
  const names = viewer.sheet().lenses.filter((each) => !each.merged && each.name !== lens).map((each) => each.name);
  if (names.includes(other)) return other;
  return names.includes("raw") ? "raw" : (names.find((name) => comparable(name, lens)) ?? names[0] ?? "");
}

/** The two lenses of a difference, the first minus the second: raw attention is the second. */
export function differencePair(viewer: Viewer): [string, string] {
  const names = viewer.sheet().lenses.filter((each) => !each.merged && each.name !== "raw").map((each) => each.name);
  const lens = viewer.lens().merged ? (names.find((name) => comparable(name, "raw")) ?? names[0]!) : viewer.state.lens;
  const other = otherLens(viewer, lens);
  return lens === "raw" ? [other, lens] : [lens, other];
}
