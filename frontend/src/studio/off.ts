/** Heads that are switched off, and what the prediction is without them. */
import { make, makeButton } from "../dom";
import { formatNumber, joinWords } from "../format";
import type { Entry, Prediction } from "./api";
import { Alert } from "./controls";

const WAYS: Record<string, string> = { zero_heads: "They write nothing", uniform_heads: "They attend to all tokens alike" };

/** Which heads are off, and how. */
export interface Off {
  off: string[];
  edit: string;
  showOff: boolean;
}

/** The panel. It keeps the list; whoever made it asks for predictions. */
export class OffPanel {
  readonly element: HTMLElement;
  readonly alert = new Alert();
  /** The list, the way or the maps that are wanted changed. */
  onChange: (maps: boolean) => void = () => {};
  private state: Off;
  private current: string | null = null;
  private readonly toggleButton = makeButton("Switch off", () => this.toggle(), { class: "hs-button hs-primary", title: "O" });
  private readonly chips = make("ul", "hs-chips", { "aria-label": "Heads that are off" });
  private readonly clearButton = makeButton("All on", () => this.set({ off: [] }));
  private readonly ways = make("fieldset", "hs-ways", {}, make("legend", "hs-label", {}, "What these heads do"));
  private readonly maps = make("input", "", { type: "checkbox" });
  private readonly predictions = make("div", "hs-predictions", { "aria-live": "polite" });

  constructor(edits: readonly Entry[]) {
    this.state = { off: [], edit: edits[0]?.name ?? "zero_heads", showOff: false };
    for (const edit of edits) this.ways.append(this.makeWay(edit));
    this.maps.addEventListener("change", () => this.set({ showOff: this.maps.checked }));
    const maps = make("label", "hs-row hs-check", {}, this.maps, make("span", "", {}, "Also show the maps without them"));
    const buttons = make("div", "hs-do", {}, this.toggleButton, this.clearButton);
    this.element = make("div", "hs-form", {}, make("p", "hs-small", {}, "Choose a head in the viewer, switch it off, and see what the model predicts without it."), buttons, this.chips, this.ways, maps, this.alert.element, this.predictions);
    this.update();
  }

  private makeWay(edit: Entry): HTMLElement {
    const radio = make("input", "", { type: "radio", name: "hs-edit", value: edit.name });
    radio.addEventListener("change", () => this.set({ edit: edit.name }));
    return make("label", "hs-row hs-check", { title: edit.about }, radio, make("span", "", {}, WAYS[edit.name] ?? edit.name));
  }

  get value(): Off {
    return { ...this.state, off: [...this.state.off] };
  }

  /** Take over a state without telling anyone; of a whole request, only what is of heads. */
  write({ off, edit, showOff }: Off): void {
    this.state = { off: [...off], edit, showOff };
    this.update();
  }

  /** The head that the viewer shows; null where there is none. */
  choose(head: string | null): void {
    if (head === this.current) return;
    this.current = head;
    this.update();
  }

  /** Switch the chosen head off, or on again. */
  toggle(): void {
    const { off } = this.state;
    if (this.current) this.set({ off: off.includes(this.current) ? off.filter((head) => head !== this.current) : [...off, this.current] });
  }

  private set(change: Partial<Off>): void {
    const before = this.state;
    this.state = { ...before, ...change };
    this.update();
    this.onChange(before.showOff !== this.state.showOff || this.state.showOff);
  }

  private update(): void {
    const { off, edit, showOff } = this.state;
    const isOff = this.current !== null && off.includes(this.current);
    this.toggleButton.textContent = this.current ? `Switch ${isOff ? "on" : "off"} ${this.current}` : "No head is shown";
    this.toggleButton.disabled = this.current === null;
    this.clearButton.hidden = !off.length;
    this.chips.hidden = !off.length;
    this.chips.replaceChildren(...off.map((head) => make("li", "", {}, this.makeChip(head))));
    for (const radio of this.ways.querySelectorAll("input")) radio.checked = radio.value === edit;
    this.maps.checked = showOff;
  }

  private makeChip(head: string): HTMLElement {
    const chip = makeButton(`${head} ×`, () => {
      this.set({ off: this.state.off.filter((each) => each !== head) });
      this.toggleButton.focus();
    });
    chip.setAttribute("aria-label", `Switch ${head} on again`);
    return chip;
  }

  /** Mark what is shown as out of date until the next predictions come. */
  wait(): void {
    this.predictions.setAttribute("aria-busy", "true");
  }

  /** Show what models predict; null while that is not known. */
  show(predictions: readonly Prediction[] | null): void {
    this.predictions.removeAttribute("aria-busy");
    const shown = predictions ?? [];
    this.predictions.replaceChildren(...shown.map((each) => makePrediction(each, this.state.off)));
  }
}

function makePrediction(prediction: Prediction, off: readonly string[]): HTMLElement {
  const box = make("div", "hs-prediction", {}, make("h3", "hs-panel-title", { title: prediction.model }, prediction.model.split("/").at(-1)!));
  if (prediction.note) box.append(make("p", "hs-small", {}, prediction.note));
  if (prediction.cosine !== undefined) {
    const text = make("p", "hs-cosine", { title: prediction.cosine }, "Cosine with that vector without ", joinWords(off), ": ", make("b", "", { "data-value": prediction.cosine }, formatNumber(prediction.cosine)));
    box.append(text);
  }
  const rows = prediction.rows ?? prediction.before.map(([name, score]) => [name, score] as const);
  if (rows.length) box.append(makeScores(prediction, rows));
  return box;
}

const QUANTITIES = { classes: "Class", mask: "Word at the mask", next: "Next token", number: "", vector: "" };

function makeScores(prediction: Prediction, rows: readonly (readonly [string, ...number[]])[]): HTMLElement {
  const compared = prediction.rows !== undefined;
  const titles = [QUANTITIES[prediction.kind], compared ? "all heads" : "probability", ...(compared ? ["without"] : [])];
  if (prediction.kind === "number" && !compared) titles[1] = "value";
  const head = make("tr", "", {}, ...titles.map((title) => make(title ? "th" : "td", "", title ? { scope: "col" } : {}, title)));
  const body = rows.map(([name, ...scores]) => {
    const cells = scores.map((score) => make("td", "hs-number", { title: score, "data-value": score }, formatNumber(score)));
    return make("tr", "", {}, make("th", "", { scope: "row" }, name, prediction.kind === "number" ? null : makeBars(scores)), ...cells);
  });
  return make("table", "hs-scores", {}, make("thead", "", {}, head), make("tbody", "", {}, ...body));
}

/** A bar for the probability before, and one for that after. */
function makeBars(scores: readonly number[]): HTMLElement {
  const bars = scores.map((score) => {
    const bar = make("span", "hs-score");
    bar.style.width = `${100 * Math.max(0, Math.min(1, score))}%`;
    return bar;
  });
  return make("span", "hs-scorebars", { "aria-hidden": "true" }, ...bars);
}
