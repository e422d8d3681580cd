/** Which heads are shown by one of their numbers: the same in the grid and in the table of numbers. */
import { parseHex, textOn } from "./colors";
import { make, makeButton } from "./dom";
import { count } from "./format";
import { classCounts, classLetters, type Filter, formatFilter, type HeadCell, listCells, makeFilter, parseFilter } from "./heads";
import type { Scalar, Viewer } from "./types";

/** The filter of a number. */
export function filterOf(viewer: Viewer, scalar: Scalar): Filter {
  return parseFilter(viewer.state.filter, scalar, viewer.sheet().layers);
}

/** Show the heads that pass a filter of a number. */
export function setFilter(viewer: Viewer, scalar: Scalar, filter: Filter): void {
  viewer.set({ scalar: scalar.name, filter: formatFilter(filter, viewer.sheet().layers) });
}

/** A function that says whether a cell is shown. */
export function passes(viewer: Viewer, scalar: Scalar): (cell: HeadCell) => boolean {
  return makeFilter(filterOf(viewer, scalar), scalar);
}

/** "4 of 72 heads: those of the class block." */
export function describeFilter(viewer: Viewer, scalar: Scalar): string {
  const filter = filterOf(viewer, scalar);
  const cells = listCells(scalar);
  const shown = cells.filter(makeFilter(filter, scalar)).length;
  if (filter.kind === "all") return `All ${count(cells.length, "head")}.`;
  const words = { highest: "the highest tenth", lowest: "the lowest tenth", nonzero: "those whose interval leaves out 0" };
  const layer = filter.kind === "class" && filter.layer !== null ? ` in layer ${viewer.sheet().layers[filter.layer]}` : "";
  const what = filter.kind === "class" ? `those of the class ${readable(scalar.classes![filter.index]!)}${layer}` : words[filter.kind];
  return `${shown} of ${count(cells.length, "head")}: ${what}.`;
}

/** The name of a class as it is read. */
export function readable(name: string): string {
  return name.replace("vertical_diagonal", "vertical + diagonal").replaceAll("_", " ");
}

/** The color of a class, and that of a letter on it. */
export function classColors(viewer: Viewer, index: number): { color: string; ink: string } {
  const { classes } = viewer.palette;
  const color = classes[index % classes.length]!;
  return { color, ink: textOn(parseHex(color)) };
}

/** A button for each class, with its letter and how many heads it has; of a number that is filtered, one that ends this. */
export function makeLegend(viewer: Viewer, scalar: Scalar, choose: (filter: Filter) => void): HTMLElement[] {
  const filter = filterOf(viewer, scalar);
  const end = (): HTMLElement[] => (filter.kind === "all" ? [] : [makeButton("Show all heads", () => choose({ kind: "all" }))]);
  if (!scalar.classes) return end();
  const letters = classLetters(scalar.classes);
  const totals = classCounts([scalar.values.flat()], scalar.classes.length)[0]!;
  return scalar.classes.map((name, index) => {
    const chosen = filter.kind === "class" && filter.index === index;
    const badge = make("span", "hs-badge", { "aria-hidden": "true" }, letters[index]!);
    const { color, ink } = classColors(viewer, index);
    Object.assign(badge.style, { background: color, color: ink });
    const button = makeButton("", () => choose(chosen ? { kind: "all" } : { kind: "class", index, layer: null }), { "aria-pressed": String(chosen) });
    button.append(badge, `${readable(name)} ${totals[index]}`);
    return button;
  });
}

/** Put a legend's buttons into an element, and keep the focus where it was. */
export function fillLegend(element: HTMLElement, buttons: readonly HTMLElement[]): void {
  const at = [...element.children].indexOf(document.activeElement as Element);
  element.hidden = !buttons.length;
  element.replaceChildren(...buttons);
  if (at >= 0) buttons[at]?.focus();
}
