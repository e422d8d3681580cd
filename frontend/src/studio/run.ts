/** The form that starts a measurement or a study. */
import { make, setOptions } from "../dom";
import { type Catalog, type Job, post, sentence, type StudioFile } from "./api";
import { Alert, EntryPicker, makeField, ModelPicker, ParameterControl, readAll } from "./controls";
import { orderLenses } from "./look";

type Kind = "measure" | "study";

/** What is asked of /api/jobs. */
export class RunForm {
  readonly element: HTMLFormElement;
  readonly alert = new Alert();
  onStart: (job: Job) => void = () => {};
  private kind: Kind = "measure";
  private files: readonly StudioFile[] = [];
  private readonly model: ModelPicker;
  private readonly data = make("select", "hs-select");
  private readonly statistics: EntryPicker;
  private readonly lenses: EntryPicker;
  private readonly limit = make("input", "hs-input", { type: "number", min: 1, max: 1e9, step: 1, placeholder: "all" });
  private readonly study = make("select", "hs-select");
  private readonly about = make("p", "hs-small");
  private readonly parameters = make("div", "hs-grid");
  private controls: ParameterControl[] = [];
  private readonly name = make("input", "hs-input", { type: "text", required: true, maxlength: 80, spellcheck: "false" });
  private readonly measureParts: HTMLElement;
  private readonly studyParts: HTMLElement;
  private readonly kinds = make("div", "hs-switch", { role: "radiogroup", "aria-label": "What to run" });
  private suggested = "";

  constructor(private readonly catalog: Catalog) {
    this.model = new ModelPicker("Model", catalog.models);
    this.statistics = new EntryPicker("Statistics", catalog.statistics, ["entropy"]);
    this.lenses = new EntryPicker("Lenses", orderLenses(catalog.lenses).filter((lens) => !lens.gradient), catalog.lenses.filter((lens) => lens.default).map((lens) => lens.name));
    this.measureParts = make("div", "hs-form", {}, makeField("Data", this.data), this.statistics.element, this.lenses.element, makeField("Examples at most", this.limit));
    this.studyParts = make("div", "hs-form", {}, makeField("Study", this.study), this.about, make("details", "hs-more", {}, make("summary", "", {}, "Parameters"), this.parameters));
    setOptions(this.study, catalog.studies.map((study) => [study.name, study.name.replaceAll("_", " ")]), catalog.studies[0]?.name ?? "");
    this.element = this.assemble();
    this.listen();
    this.setFiles([]);
    this.update();
  }

  private assemble(): HTMLFormElement {
    const kinds: [Kind, string][] = [["measure", "Measurement"], ...(this.catalog.studies.length ? [["study", "Study"] as [Kind, string]] : [])];
    this.kinds.append(...kinds.map(([kind, label]) => this.makeKind(kind, label)));
    const start = make("button", "hs-button hs-primary", { type: "submit" }, "Start");
    return make(
      "form",
      "hs-form",
      { "aria-label": "Start a run" },
      this.kinds,
      this.model.element,
      this.measureParts,
      this.studyParts,
      makeField("Name of the result", this.name, "Letters, digits, spaces and . _ - +"),
      make("div", "hs-do", {}, start),
      this.alert.element,
    );
  }

  private makeKind(kind: Kind, label: string): HTMLElement {
    const radio = make("input", "", { type: "radio", name: "hs-run", value: kind });
    radio.checked = kind === this.kind;
    radio.addEventListener("change", () => (this.kind = kind));
    return make("label", "", {}, radio, make("span", "", {}, label));
  }

  private listen(): void {
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.start();
    });
    this.study.addEventListener("change", () => this.fillStudy());
    for (const kind of ["input", "change"]) this.element.addEventListener(kind, () => this.update());
  }

  /** The files of the folder: data to choose, and names that are taken. */
  setFiles(files: readonly StudioFile[]): void {
    const before = this.files.map((file) => file.id).join();
    this.files = files;
    const data = this.dataFiles();
    const options = [...this.catalog.datasets.map((name) => [`bundled ${name}`, `${name} (bundled)`] as const), ...data.map((file) => [`file ${file.id}`, file.name] as const)];
    setOptions(this.data, options, options.some(([value]) => value === this.data.value) ? this.data.value : options[0]![0]);
    if (before !== files.map((file) => file.id).join() || !this.controls.length) this.fillStudy();
    this.update();
  }

  private dataFiles(): StudioFile[] {
    return this.files.filter((file) => file.kind === "data");
  }

  private fillStudy(): void {
    const study = this.catalog.studies.find((each) => each.name === this.study.value);
    const before = readAll(this.controls);
    this.controls = (study?.parameters ?? []).map((parameter) => new ParameterControl(parameter, this.dataFiles()));
    for (const control of this.controls) control.write(before[control.parameter.name] ?? null);
    this.parameters.replaceChildren(...this.controls.map((control) => control.element));
    this.about.textContent = study?.about ?? "";
  }

  private update(): void {
    this.measureParts.hidden = this.kind !== "measure";
    this.studyParts.hidden = this.kind !== "study";
    if (this.name.value === this.suggested) this.name.value = this.suggested = this.suggest();
  }

  /** A name that no result has. */
  private suggest(): string {
    const data = this.data.selectedOptions[0]?.textContent?.replace(/ \(bundled\)$|\.[^.]*$/, "") ?? "";
    const chosen = this.statistics.read().map((each) => each.name).slice(0, 3);
    const wanted = this.kind === "study" ? this.study.value : [...chosen, data].join("-");
    const base = wanted.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "").slice(0, 60) || "result";
    const taken = new Set(this.files.map((file) => file.name.split("/")[0]!.replace(/\.nc$/, "")));
    for (let number = 1; ; number++) {
      const name = number > 1 ? `${base}-${number}` : base;
      if (!taken.has(name)) return name;
    }
  }

  private read(): Record<string, unknown> {
    const common = { kind: this.kind, model: this.model.read(), name: this.name.value.trim() };
    if (this.kind === "study") return { ...common, study: this.study.value, parameters: readAll(this.controls) };
    const [where, ...rest] = this.data.value.split(" ");
    const data = where === "file" ? { id: rest.join(" ") } : { bundled: rest.join(" ") };
    return { ...common, data, statistics: this.statistics.read(), lenses: this.lenses.read(), limit: this.limit.value ? Number(this.limit.value) : null };
  }

  private async start(): Promise<void> {
    try {
      this.alert.show("");
      this.onStart(await post<Job>("/api/jobs", this.read()));
    } catch (error) {
      this.alert.show(sentence(error));
    }
  }
}
