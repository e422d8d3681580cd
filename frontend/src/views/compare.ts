/** One head through several lenses, and their difference, with one cursor. */
import { errorOf } from "../decode";
import { joinWords } from "../format";
import { derive } from "../heatmap";
import { comparable, differencePair, whyNoDifference } from "../lenses";
import { difference } from "../pairs";
import { type Panel, Panels, readDifference } from "../panels";
import { drawCall, mapsOf, type MapsName, noteHidden, withWords } from "../python";
import { readHidden, readShare } from "../reading";
import type { LensHeader, MapData, OpenView, Table, View, Viewer } from "../types";

/** Whether two maps are the same as far as their codecs can tell. */
export function sameMaps(first: MapData, second: MapData): boolean {
  for (let i = 0; i < first.weights.length; i++) {
    const [a, b] = [first.weights[i]!, second.weights[i]!];
    if (a !== a && b !== b) continue;
    const error = errorOf(a, first.codec, first.signed, first.scale) + errorOf(b, second.codec, second.signed, second.scale);
    if (!(Math.abs(a - b) <= 1.05 * error + 1e-6)) return false;
  }
  return true;
}

/** A picture whose colors end below this share of the common scale looks empty. */
const PALE = 0.2;

class Compare implements OpenView {
  private readonly pictures: Panels;
  private panels: Panel[] = [];
  private ask = 0;

  constructor(private readonly viewer: Viewer, element: HTMLElement) {
    this.pictures = new Panels(viewer, element);
  }

  private lenses(): LensHeader[] {
    return this.viewer.sheet().lenses.filter((lens) => !lens.merged);
  }

  update(): void {
    void this.load(++this.ask).catch((error) => this.viewer.fail(error));
  }

  private async load(ask: number): Promise<void> {
    const { viewer } = this;
    const { sheet, layer, head } = viewer.state;
    const began = performance.now();
    const names = this.lenses().map((lens) => lens.name);
    const maps = await Promise.all(names.map((name) => viewer.map(sheet, name, layer, head)));
    if (ask !== this.ask) return;
    this.panels = this.makePanels(names, maps);
    this.pictures.draw(this.panels);
    viewer.drawn({ layer, head, panels: this.panels.length, ms: performance.now() - began });
    viewer.speak(this.describe());
  }

  /** Panels of all lenses and of the difference; weights of one unit share one scale, unless the state says otherwise. */
  private makePanels(names: readonly string[], maps: readonly MapData[]): Panel[] {
    const [lens, other] = differencePair(this.viewer);
    const attention = maps.filter((map, i) => comparable(names[i]!, "raw") && !map.missing);
    const shared = Math.max(0, ...attention.map((map) => derive(map.weights, map.rows, map.columns).limit)) || 1;
    const panels: Panel[] = names.map((name, i) => {
      const map = maps[i]!;
      const own = derive(map.weights, map.rows, map.columns).limit;
      const limit = this.viewer.state.shared && comparable(name, "raw") ? shared : own;
      return { name, title: this.viewer.lens(name).quantity, map, weights: map.weights, signed: map.signed, limit, instead: map.missing ?? "" };
    });
    const [a, b] = [panels.find((panel) => panel.name === lens), panels.find((panel) => panel.name === other)];
    if (a && b && !a.instead && !b.instead) panels.push(this.differencePanel(a, b));
    return panels;
  }

  private differencePanel(a: Panel, b: Panel): Panel {
    const base = { name: "difference", title: `${a.name} − ${b.name}`, map: a.map, parts: [a.map, b.map], signed: true, limit: Math.max(a.limit, b.limit) };
    const instead = whyNoDifference(a.name, b.name);
    if (instead) return { ...base, weights: a.weights, instead };
    const weights = difference(a, b);
    if (!sameMaps(a.map, b.map)) return { ...base, weights, instead: "" };
    const why = this.viewer.lens(a.name).note || `${a.name} and ${b.name} are the same map here, as far as the stored digits can tell.`;
    a.instead = why;
    return { ...base, weights, instead: `There is no difference between ${a.name} and ${b.name} in this head.` };
  }

  keydown(event: KeyboardEvent): boolean {
    return this.pictures.keydown(event);
  }

  async table(): Promise<Table> {
    return this.pictures.table(`${this.viewer.headName()} through ${this.lenses().length} lenses.`);
  }

  async svg(): Promise<string> {
    return this.pictures.svg(this.describe());
  }

  python(): string {
    const { state } = this.viewer;
    const { layer, head } = state;
    const [lens, other] = differencePair(this.viewer);
    const [one, two] = [other, lens].map((name) => mapsOf(this.viewer.sheet(), name)) as [MapsName, MapsName];
    const what = one.lens ? one.what : `[${withWords(one, state)}, ${withWords(two, state)}]`;
    return `${drawCall(what, "compare", { lens, layer, head })}${noteHidden(state, one)}`;
  }

  describe(): string {
    const { viewer } = this;
    const difference = this.panels.find((panel) => panel.name === "difference");
    const name = `L${viewer.state.layer}H${viewer.state.head}`;
    const chosen = this.panels.find((panel) => panel.name === viewer.state.lens) ?? this.panels[0];
    if (!chosen) return "";
    const hidden = readHidden(chosen.map, { name: chosen.name });
    if (!difference) return [`${name}: ${this.readMissing()}`, hidden].filter(Boolean).join(" ");
    const main = difference.instead ? [difference.instead, this.readSame()] : [readDifference(difference), readShare(viewer), this.readPale()];
    return [`${name}: ${main[0]}`, ...main.slice(1), hidden].filter(Boolean).join(" ");
  }

  /** Why two lenses have one map here. */
  private readSame(): string {
    const [lens] = differencePair(this.viewer);
    return this.panels.find((panel) => panel.name === lens)?.instead ?? "";
  }

  /** Which pictures are nearly empty on the common scale, and what shows more of them. */
  private readPale(): string {
    const pale = this.panels.filter(({ name, instead, map, limit }) => name !== "difference" && !instead && derive(map.weights, map.rows, map.columns).limit < PALE * limit);
    const names = joinWords(pale.map((panel) => panel.name));
    return pale.length ? `On one scale ${names} ${pale.length > 1 ? "are" : "is"} pale; C gives each map its own.` : "";
  }

  /** Which lenses have no map of this head, and why. */
  private readMissing(): string {
    const [shown, missing] = [this.panels.filter((panel) => !panel.instead), this.panels.filter((panel) => panel.instead)];
    if (!shown.length) return missing[0]!.instead;
    const but = missing.length ? ` but ${joinWords(missing.map((panel) => panel.name))}: ${missing[0]!.instead}` : ".";
    return `one picture for each lens${but}`;
  }

  destroy(): void {
    this.ask = -1;
    this.pictures.destroy();
  }
}

export const compareView: View = {
  name: "compare",
  title: "Lenses",
  key: "3",
  controls: ["lens", "other", "layer", "head", "side", "shared", "words", "special", "window", "search"],
  available: (viewer) => (viewer.header.sheets[viewer.state.sheet]?.lenses.filter((lens) => !lens.merged).length ?? 0) > 1,
  open: (viewer, element) => new Compare(viewer, element),
};
