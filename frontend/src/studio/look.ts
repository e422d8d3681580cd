/** The form for a text, models and lenses. */
import { make, makeButton } from "../dom";
import type { Catalog, Entry, LookBody } from "./api";
import { Alert, EntryPicker, makeField, ModelPicker } from "./controls";

/** What the form asks for; heads that are off are chosen elsewhere. */
export type Asked = Omit<LookBody, "off" | "edit" | "showOff">;

/** Text, second text, models, lenses, target and generated tokens, with the button Look. */
export class LookForm {
  readonly element: HTMLFormElement;
  readonly alert = new Alert();
  private readonly text = make("textarea", "hs-text", { rows: 5, required: true });
  private readonly pair = make("textarea", "hs-text", { rows: 2, "aria-label": "Second text" });
  private readonly second = make("details", "hs-more");
  private readonly model: ModelPicker;
  private readonly against: ModelPicker;
  private readonly lenses: EntryPicker;
  private readonly target = make("input", "hs-input", { type: "text", maxlength: 200, placeholder: "predicted", spellcheck: "false" });
  private readonly targetRow = makeField("Target", this.target, "predicted, class=NAME, mask:word=his or next:word=mat");
  private readonly generate: HTMLInputElement;
  private readonly button = make("button", "hs-button hs-primary", { type: "submit", title: "Ctrl+Enter" }, "Look");
  private readonly cancel = makeButton("Cancel", () => this.onCancel(), { hidden: true });
  private readonly status = make("p", "hs-status", { role: "status" });
  private readonly generated = make("div", "hs-generated", { hidden: true });
  onSubmit: (asked: Asked) => void = () => {};
  onCancel: () => void = () => {};
  private shown = "";
  private busy = false;

  constructor(catalog: Catalog) {
    this.text.value = catalog.example;
    this.model = new ModelPicker("Model", catalog.models);
    this.against = new ModelPicker("Compare with", catalog.models, true);
    this.lenses = new EntryPicker("Lenses", orderLenses(catalog.lenses), catalog.lenses.filter((lens) => lens.default).map((lens) => lens.name));
    this.generate = make("input", "hs-input", { type: "number", min: 0, max: catalog.limits.newTokens, step: 1, value: 0 });
    this.second.append(make("summary", "", {}, "Second text"), this.pair);
    this.element = this.assemble();
    this.listen();
    this.update();
  }

  private assemble(): HTMLFormElement {
    const generated = makeField("Generate tokens", this.generate, "How many tokens a decoder writes after the text; their attention is shown, too");
    generated.classList.add("hs-inline");
    const words = make("div", "hs-block hs-words", {}, makeField("Text", this.text), this.second);
    const models = make("div", "hs-block hs-models", {}, this.model.element, this.against.element);
    const ways = make("div", "hs-block hs-lenses", {}, this.lenses.element, this.targetRow, generated);
    const actions = make("div", "hs-do", {}, this.button, this.cancel, this.status);
    return make("form", "hs-form hs-look", { "aria-label": "Look at a text" }, words, models, ways, make("div", "hs-block hs-outcome", {}, actions, this.alert.element, this.generated));
  }

  private listen(): void {
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.onSubmit(this.read());
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.element.requestSubmit();
    });
    for (const kind of ["input", "change"]) this.element.addEventListener(kind, () => this.update());
  }

  private update(): void {
    this.targetRow.hidden = !this.lenses.gradient;
    const changed = this.shown && this.alert.element.hidden && this.shown !== JSON.stringify(this.read());
    if (!this.busy) this.status.textContent = changed ? "Changed. Press Look, or Ctrl+Enter." : "";
  }

  read(): Asked {
    const [first, second] = [this.model.read(), this.against.read()];
    return {
      text: this.text.value,
      pair: this.second.open && this.pair.value.trim() ? this.pair.value : null,
      models: [first!, ...(second ? [second] : [])],
      lenses: this.lenses.read(),
      target: this.lenses.gradient ? this.target.value.trim() || null : null,
      generate: Number(this.generate.value) || 0,
    };
  }

  write(asked: Asked): void {
    this.text.value = asked.text;
    this.pair.value = asked.pair ?? "";
    this.second.open = asked.pair !== null;
    this.model.write(asked.models[0] ?? null);
    this.against.write(asked.models[1] ?? null);
    this.lenses.write(asked.lenses);
    this.target.value = asked.target ?? "";
    this.generate.value = String(asked.generate);
    this.update();
  }

  /** Say what happens while a look is under way; null ends it. */
  say(work: string | null): void {
    this.busy = work !== null;
    this.cancel.hidden = !this.busy;
    this.status.classList.toggle("hs-busy", this.busy);
    if (work === null) this.update();
    else if (this.status.textContent !== work) this.status.textContent = work;
  }

  /** Remember what is on the screen, and show what was generated. */
  done(asked: Asked | null, generated: readonly string[]): void {
    this.shown = asked ? JSON.stringify(asked) : "";
    const texts = [...new Set(generated)];
    this.generated.hidden = !texts.length;
    this.generated.replaceChildren(...texts.flatMap((text) => [make("p", "hs-label", {}, "Generated"), make("p", "hs-written", {}, text || "Nothing: the first token ended the text.")]));
    this.update();
  }
}

/** Raw attention first, then the other lenses that are shown by default. */
export function orderLenses(lenses: readonly Entry[]): Entry[] {
  const rank = (lens: Entry): number => (lens.name === "raw" ? 0 : lens.default ? 1 : 2);
  return [...lenses].sort((a, b) => rank(a) - rank(b));
}
