/** What each key does. */
import { moveWindow, zoomWindow } from "./toolbar";
import type { Control, OpenView, State, View, Viewer } from "./types";

/** Keys that do what a control of the toolbar does: where a view has no such control they mean nothing. */
const CONTROLS: Record<string, Control> = {
  arrowleft: "head", arrowright: "head", arrowup: "layer", arrowdown: "layer", l: "lens", c: "shared", w: "words", s: "special", x: "side",
  "[": "window", "]": "window", "+": "window", "-": "window",
};

/** What keys act on. */
export interface KeyTargets {
  viewer: Viewer;
  opened: OpenView | null;
  views: readonly View[];
  toggleTable(): void;
  openExport(): void;
  openHelp(): void;
  focusSearch(): void;
  /** Whether the toolbar has a control. */
  shows(control: Control): boolean;
}

/** Act on a key; true where it meant something. Keys of text fields and selects are theirs. */
export function handleKey(event: KeyboardEvent, targets: KeyTargets): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return false;
  if (targets.opened?.keydown?.(event)) return true;
  const action = findAction(event, targets);
  action?.();
  return action !== null;
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  if (!(target instanceof HTMLInputElement)) {
    const pressed = event.key === "Enter" || event.key === " ";
    if (isMove(event) && target instanceof HTMLElement && target.closest(".hs-table, .hs-scroll")) return true; // scrolls
    return pressed && target instanceof HTMLElement && target.matches("button, summary, a");
  }
  if (target.type === "checkbox") return event.key === " ";
  return target.type === "range" || target.type === "radio" ? isMove(event) || event.key === " " : true;
}

function isMove(event: KeyboardEvent): boolean {
  return event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End";
}

function findAction(event: KeyboardEvent, targets: KeyTargets): (() => void) | null {
  const { viewer, views } = targets;
  const { state } = viewer;
  const view = views.find((each) => each.key === event.key);
  if (view) return () => viewer.set({ view: view.name });
  const plain: Record<string, () => void> = {
    t: targets.toggleTable,
    e: targets.openExport,
    "?": targets.openHelp,
    "/": targets.focusSearch,
  };
  const known = plain[event.key.toLowerCase()];
  if (known || !viewer.header.sheets.length) return known ?? null;
  const changes: Record<string, () => void> = {
    arrowleft: () => viewer.set({ head: step(viewer.sheet().heads, state.head, -1) }),
    arrowright: () => viewer.set({ head: step(viewer.sheet().heads, state.head, 1) }),
    arrowup: () => viewer.set({ layer: step(viewer.sheet().layers, state.layer, -1) }),
    arrowdown: () => viewer.set({ layer: step(viewer.sheet().layers, state.layer, 1) }),
    c: () => viewer.set({ shared: !state.shared }),
    w: () => viewer.set({ words: !state.words }),
    s: () => viewer.set({ special: !state.special }),
    x: () => viewer.set({ side: state.side === "query" ? "key" : "query" }),
    l: () => viewer.set(nextLens(viewer)),
    "[": () => moveWindow(viewer, -1),
    "]": () => moveWindow(viewer, 1),
    "+": () => zoomWindow(viewer, true),
    "-": () => zoomWindow(viewer, false),
    escape: () => viewer.set(state.tokens.length ? { tokens: [] } : { view: views[0]?.name ?? state.view }),
  };
  const control = CONTROLS[event.key.toLowerCase()];
  return (!control || targets.shows(control) ? changes[event.key.toLowerCase()] : null) ?? null;
}

/** The label after or before another; at the ends it stays. */
export function step(labels: readonly number[], label: number, by: number): number {
  const index = labels.indexOf(label) + by;
  return labels[Math.max(0, Math.min(labels.length - 1, index))] ?? label;
}

function nextLens(viewer: Viewer): Partial<State> {
  const names = viewer.sheet().lenses.map((lens) => lens.name);
  return { lens: names[(names.indexOf(viewer.state.lens) + 1) % names.length] ?? viewer.state.lens };
}
