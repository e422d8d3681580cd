/** The state of an atlas, and its place in the URL's fragment. */
import type { Scalar } from "../types";
import { headName } from "./files";
import type { AtlasHeader, AtlasState } from "./types";

/** The name of a number by head: with its lens, where it was measured through one. */
export function scalarKey(scalar: Pick<Scalar, "name" | "lens">): string {
  return scalar.lens === null ? scalar.name : `${scalar.name}@${scalar.lens}`;
}

/** All numbers that can be an axis: those that were measured, then layer and head. */
export function listAxes(header: AtlasHeader): Scalar[] {
  const plain = (name: string, value: (layer: number, head: number) => number): Scalar => ({
    name,
    label: name,
    lens: null,
    values: header.layers.map((layer) => header.heads.map((head) => value(layer, head))),
    low: null,
    high: null,
    n: null,
    classes: null,
  });
  return [...header.scalars.filter((scalar) => !scalar.classes), plain("layer", (layer) => layer), plain("head", (_, head) => head)];
}

/** The state before anything was chosen: the activity, the first number that is another one, and the most active head. */
export function defaultState(header: AtlasHeader): AtlasState {
  const axes = listAxes(header);
  const activity = axes.find((axis) => axis.name === header.activity.name.split(":")[0] && (axis.lens ?? header.activity.lens) === header.activity.lens);
  const x = activity ?? axes[0]!;
  const share = axes.find((axis) => axis.name === "effective_share" && axis !== x);
  const y = share ?? axes.find((axis) => axis.name !== x.name) ?? x;
  const lens = header.lenses[0]?.name ?? "";
  const head = findLargest(header, x);
  return { x: scalarKey(x), y: scalarKey(y), logX: false, logY: false, head, lens, side: "to", example: -1, token: -1, theme: "auto" };
}

/** The head with examples that has the largest number; "" where no head has any. */
function findLargest(header: AtlasHeader, scalar: Scalar): string {
  let [best, most] = ["", -Infinity];
  header.layers.forEach((layer, i) =>
    header.heads.forEach((head, j) => {
      const [name, value] = [headName(layer, head), scalar.values[i]?.[j] ?? -Infinity];
      if (header.files[name] && value > most) [best, most] = [name, value];
    }),
  );
  return best;
}

/** The state with every field made valid. */
export function normalize(header: AtlasHeader, state: AtlasState): AtlasState {
  const defaults = defaultState(header);
  const axes = new Set(listAxes(header).map(scalarKey));
  const head = Object.hasOwn(header.files, state.head) ? state.head : defaults.head;
  const chosen = head !== "" && state.example >= 0 && state.example < (header.files[head] ?? 0) && state.token >= 0;
  return {
    x: axes.has(state.x) ? state.x : defaults.x,
    y: axes.has(state.y) ? state.y : defaults.y,
    logX: state.logX === true,
    logY: state.logY === true,
    head,
    lens: header.lenses.some((lens) => lens.name === state.lens) ? state.lens : defaults.lens,
    side: state.side === "from" ? "from" : "to",
    example: chosen ? state.example : -1,
    token: chosen ? state.token : -1,
    theme: state.theme === "light" || state.theme === "dark" ? state.theme : "auto",
  };
}

/** The fields that a fragment names; `normalize` checks them. */
export function parseFragment(fragment: string): Partial<AtlasState> {
  const fields = new URLSearchParams(fragment.replace(/^#/, "").slice(0, 2000));
  const change: Partial<AtlasState> = {};
  for (const name of ["x", "y", "head", "lens"] as const) {
    const text = fields.get(name);
    if (text !== null) change[name] = text;
  }
  const log = fields.get("log");
  if (log !== null) Object.assign(change, { logX: log.includes("x"), logY: log.includes("y") });
  const at = /^(\d{1,6}):(\d{1,6})$/.exec(fields.get("token") ?? "");
  if (at) Object.assign(change, { example: Number(at[1]), token: Number(at[2]) });
  if (fields.get("side") === "from") change.side = "from";
  const theme = fields.get("theme");
  if (theme === "light" || theme === "dark") change.theme = theme;
  return change;
}

/** The fragment of a state: what differs from the defaults. */
export function toFragment(state: AtlasState, defaults: AtlasState): string {
  const fields = new URLSearchParams();
  for (const name of ["x", "y", "head", "lens", "side", "theme"] as const)
    if (state[name] !== defaults[name]) fields.set(name, state[name]);
  const log = `${state.logX ? "x" : ""}${state.logY ? "y" : ""}`;
  if (log) fields.set("log", log);
  if (state.example >= 0) fields.set("token", `${state.example}:${state.token}`);
  return fields.toString().replaceAll("%40", "@").replaceAll("%3A", ":").replaceAll("%3D", "=");
}
