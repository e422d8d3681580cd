/** Controls that are made from what the server describes: parameters, entries and models. */
import { make, setOptions } from "../dom";
import type { Chosen, Entry, ModelValue, Parameter, ParameterValue, StudioFile } from "./api";

const OTHER = "other…";
const NONE = "none…";
let made = 0;

/** A label above or before a control. */
export function makeField(label: string, control: HTMLElement, title = ""): HTMLLabelElement {
  return make("label", "hs-row", { title: title || null }, make("span", "hs-label", {}, label), control);
}

/** A place for a sentence that is read out at once. */
export class Alert {
  readonly element = make("p", "hs-alert", { role: "alert", hidden: true });

  show(text: string): void {
    this.element.hidden = !text;
    this.element.textContent = text;
  }
}

/** One parameter; what is left at its default is not sent. */
export class ParameterControl {
  readonly element: HTMLElement;
  private readonly control: HTMLInputElement | HTMLSelectElement;

  constructor(readonly parameter: Parameter, files: readonly StudioFile[] = []) {
    this.control = this.makeControl(files);
    const label = parameter.name.replaceAll("_", " ");
    const boxed = parameter.type === "bool";
    this.element = boxed
      ? make("label", "hs-row hs-check", { title: parameter.about || null }, this.control, make("span", "hs-label", {}, label))
      : makeField(label, this.control, parameter.about);
    this.write(null);
  }

  private makeControl(files: readonly StudioFile[]): HTMLInputElement | HTMLSelectElement {
    const { type, choices, optional, default: standard } = this.parameter;
    if (type === "choice" || type === "file") {
      const select = make("select", "hs-select");
      const options: [string, string][] = type === "file" ? files.map((file) => [file.id, file.name]) : (choices ?? []).map((each) => [each, each]);
      setOptions(select, optional || !standard ? [["", type === "file" ? "none" : "default"], ...options] : options, standard);
      return select;
    }
    if (type === "bool") return make("input", "", { type: "checkbox" });
    const number = type === "int" || type === "float";
    const limits = number ? { type: "number", step: type === "int" ? 1 : "any" } : { type: "text", pattern: "[\\w+\\-]{1,64}", spellcheck: "false" };
    return make("input", "hs-input", { ...limits, placeholder: standard || "default", required: !optional && !standard });
  }

  /** The value, or null for the default. */
  read(): ParameterValue | null {
    const { control, parameter } = this;
    if (control instanceof HTMLInputElement && control.type === "checkbox") return control.checked === (parameter.default === "true") ? null : control.checked;
    const text = control.value.trim();
    return text === "" || text === parameter.default ? null : text;
  }

  write(value: ParameterValue | null): void {
    const { control, parameter } = this;
    if (control instanceof HTMLInputElement && control.type === "checkbox") control.checked = value === null ? parameter.default === "true" : value === true;
    else control.value = value === null ? (parameter.type === "choice" ? parameter.default : "") : String(value);
  }
}

/** Values of several parameters, without those at their defaults. */
export function readAll(controls: readonly ParameterControl[]): Record<string, ParameterValue> {
  const values = controls.map((control) => [control.parameter.name, control.read()] as const);
  return Object.fromEntries(values.filter((pair): pair is [string, ParameterValue] => pair[1] !== null));
}

interface Choice {
  entry: Entry;
  box: HTMLInputElement;
  controls: ParameterControl[];
  details: HTMLElement | null;
}

/** Entries as boxes to tick; the parameters of those that are ticked are below. */
export class EntryPicker {
  readonly element: HTMLFieldSetElement;
  private readonly choices: Choice[];

  constructor(legend: string, entries: readonly Entry[], chosen: readonly string[]) {
    this.choices = entries.map((entry) => this.makeChoice(entry, chosen.includes(entry.name)));
    const pills = this.choices.map(({ entry, box }) => make("label", "hs-pill", { title: entry.about }, box, make("span", "", {}, entry.name.replaceAll("_", " "))));
    const details = this.choices.flatMap((choice) => choice.details ?? []);
    this.element = make("fieldset", "hs-entries", {}, make("legend", "hs-label", {}, legend), make("div", "hs-pills", {}, ...pills), ...details);
    this.element.addEventListener("change", () => this.update());
    this.update();
  }

  private makeChoice(entry: Entry, checked: boolean): Choice {
    const box = make("input", "", { type: "checkbox", value: entry.name, "aria-description": entry.about });
    box.checked = checked;
    const controls = entry.parameters.map((parameter) => new ParameterControl(parameter));
    if (!controls.length) return { entry, box, controls, details: null };
    const shown = entry.parameters.map((parameter) => parameter.name.replaceAll("_", " ")).join(", ");
    const summary = make("summary", "", {}, make("b", "", {}, entry.name.replaceAll("_", " ")), ` ${shown}`);
    const about = make("p", "hs-small", {}, entry.about);
    return { entry, box, controls, details: make("details", "hs-parameters", {}, summary, about, make("div", "hs-grid", {}, ...controls.map((control) => control.element))) };
  }

  private update(): void {
    for (const { box, details } of this.choices) if (details) details.hidden = !box.checked;
  }

  read(): Chosen[] {
    return this.choices.filter(({ box }) => box.checked).map(({ entry, controls }) => ({ name: entry.name, parameters: readAll(controls) }));
  }

  write(chosen: readonly Chosen[]): void {
    for (const { entry, box, controls } of this.choices) {
      const found = chosen.find((each) => each.name === entry.name);
      box.checked = found !== undefined;
      for (const control of controls) control.write(found?.parameters[control.parameter.name] ?? null);
    }
    this.update();
  }

  /** Whether an entry that needs a target is ticked. */
  get gradient(): boolean {
    return this.choices.some(({ entry, box }) => entry.gradient && box.checked);
  }
}

/** A model of the list, or one that is named. */
export class ModelPicker {
  readonly element: HTMLElement;
  private readonly select: HTMLSelectElement;
  private readonly name: HTMLInputElement;
  private readonly nameRow: HTMLElement;

  constructor(label: string, models: readonly { id: string; name: string }[], private readonly optional = false) {
    this.select = make("select", "hs-select", { id: `hs-model-${++made}` });
    this.name = make("input", "hs-input", { type: "text", maxlength: 200, placeholder: "bert-base-uncased", spellcheck: "false", autocapitalize: "off" });
    this.nameRow = makeField("Hub id or folder", this.name);
    const listed = models.map((model) => [model.id, model.name] as const);
    setOptions(this.select, [...(optional ? [[NONE, "none"] as const] : []), ...listed, [OTHER, "another, by its name …"]], optional ? NONE : (models[0]?.id ?? OTHER));
    this.select.addEventListener("change", () => this.update(true));
    this.element = make("div", "hs-model", {}, makeField(label, this.select), this.nameRow);
    this.update(false);
  }

  private update(focus: boolean): void {
    const named = this.select.value === OTHER;
    this.nameRow.hidden = !named;
    this.name.required = named;
    if (named && focus) this.name.focus();
  }

  read(): ModelValue | null {
    if (this.optional && this.select.value === NONE) return null;
    return this.select.value === OTHER ? { name: this.name.value.trim() } : { id: this.select.value };
  }

  /** Choose a model; one that is not in the list any more leaves the choice as it is. */
  write(value: ModelValue | null): void {
    if (value === null) this.select.value = this.optional ? NONE : this.select.value;
    else if ("name" in value) [this.select.value, this.name.value] = [OTHER, value.name];
    else if ([...this.select.options].some((option) => option.value === value.id)) this.select.value = value.id;
    this.update(false);
  }
}
