/** The studio's page: panels that ask the server, beside the viewer that shows what it answers. */
import { mount } from "../app";
import { make, makeButton } from "../dom";
import { parseFragment } from "../state";
import { resolveTheme, watchTheme } from "../theme";
import type { Header, Mounted, State } from "../types";
import { type Catalog, get, type LookAnswer, type LookBody, post, type Prediction, sentence, StudioSource } from "./api";
import { Alert } from "./controls";
import { Events, type StudioEvent } from "./events";
import { JobList } from "./jobs";
import { type Asked, LookForm } from "./look";
import { keep, recall } from "./memory";
import { OffPanel } from "./off";
import { ResultsPanel } from "./results";
import { RunForm } from "./run";
import { Tabs } from "./tabs";

const NOTHING = "Nothing is shown yet. Type a text and press Look, or open a result.";

/** Show the studio in an element. */
export function mountStudio(element: HTMLElement): void {
  const root = make("div", "headscope-viewer hs-studio", { "data-theme": resolveTheme(parseFragment(location.hash).theme ?? "auto") });
  root.append(make("p", "hs-wait", { role: "status" }, "Opening the studio …"));
  element.replaceChildren(root);
  get<Catalog>("/api/catalog").then(
    (catalog) => new Studio(root, catalog).start(),
    (error: unknown) => root.replaceChildren(make("p", "hs-wait hs-alert", { role: "alert" }, sentence(error))),
  );
}

/** The page, what is on the screen, and what is asked for at the moment. */
class Studio {
  private readonly form: LookForm;
  private readonly off: OffPanel;
  private readonly results: ResultsPanel;
  private readonly run: RunForm;
  private readonly jobs = new JobList();
  private readonly tabs: Tabs;
  private readonly trouble = new Alert();
  private readonly place = make("main", "hs-place", { "aria-label": "Viewer" });
  private readonly side = make("aside", "hs-side", { "aria-label": "Studio", id: "hs-side" });
  private readonly hide = makeButton("«", () => this.toggleSide(), { class: "hs-button hs-fold", "aria-controls": "hs-side" });
  private readonly empty = make("p", "hs-wait");
  private readonly working = make("p", "hs-working hs-busy", { role: "status", hidden: true });
  private source: StudioSource | null = null;
  private mounted: Mounted | null = null;
  private header: Header | null = null;
  /** The look that is on the screen; null where it is a result. */
  private shown: LookBody | null = null;
  private pending: AbortController | null = null;
  private predicting: AbortController | null = null;
  private work = "";

  constructor(private readonly root: HTMLElement, catalog: Catalog) {
    this.form = new LookForm(catalog);
    this.off = new OffPanel(catalog.edits);
    this.results = new ResultsPanel(catalog.folder);
    this.run = new RunForm(catalog);
    this.tabs = new Tabs([
      { name: "look", title: "Look", content: this.form.element },
      { name: "off", title: "Heads off", content: this.off.element },
      { name: "results", title: "Results", content: this.results.element },
      { name: "run", title: "Run", content: make("div", "hs-form", {}, this.jobs.element, this.run.element) },
    ]);
    this.assemble(catalog);
    this.listen();
  }

  private assemble(catalog: Catalog): void {
    const skip = makeButton("Go to the viewer", () => this.focusViewer(), { class: "hs-button hs-skip" });
    const title = make("h1", "hs-brand", {}, "headscope studio", make("span", "hs-small", { title: `Version ${catalog.version}` }, ` ${catalog.folder}`));
    this.side.append(skip, title, this.trouble.element, this.tabs.list, ...this.tabs.panels);
    this.place.append(this.empty);
    this.root.replaceChildren(this.side, this.hide, this.place, this.working);
    document.title = `${catalog.folder} · headscope studio`;
    this.foldSide(recall().hidden === true);
  }

  private listen(): void {
    this.form.onSubmit = (asked) => void this.look(asked);
    this.form.onCancel = () => this.cancel();
    this.off.onChange = (maps) => this.changeOff(maps);
    this.results.onOpen = (file) => void this.open(file.id, file.name, this.results.alert);
    this.results.onList = () => this.run.setFiles(this.results.files);
    this.jobs.onOpen = (id, title) => void this.open(id, title, this.run.alert);
    this.jobs.onChange = () => this.onJobs();
    this.run.onStart = (job) => {
      this.jobs.take(job);
      this.jobs.element.scrollIntoView({ block: "nearest" });
    };
    this.tabs.onChange = (name) => this.onPanel(name);
    watchTheme(() => this.followTheme());
    document.addEventListener("keydown", (event) => this.onKey(event));
    new Events((event) => this.onEvent(event), (text) => this.trouble.show(text));
  }

  /** Show again what was shown before a reload, or the example. */
  start(): void {
    const { body, result, panel } = recall();
    void this.results.refresh();
    this.tabs.choose(panel ?? "look");
    this.restore(body);
    void this.repeat(result ?? null);
  }

  private async repeat(result: { id: string; name: string } | null): Promise<void> {
    if (result && (await this.open(result.id, result.name, this.results.alert))) return;
    await this.look(this.form.read());
  }

  private restore(body: LookBody | undefined): void {
    try {
      if (body) this.form.write(body);
      if (body) this.off.write(body);
    } catch {
      keep({ body: undefined }); // it was written by another version
    }
  }

  private async look(asked: Asked): Promise<void> {
    const models = JSON.stringify(asked.models);
    if (this.shown && JSON.stringify(this.shown.models) !== models) this.off.write({ ...this.off.value, off: [] });
    const body: LookBody = { ...asked, ...this.off.value };
    const signal = this.begin(this.form.alert);
    try {
      const answer = await post<LookAnswer>("/api/look", body, signal);
      const moved = this.shown?.text !== body.text || this.shown.pair !== body.pair;
      await this.show(answer.view, moved ? { tokens: [], start: 0, count: 0 } : {}, signal);
      this.shown = body;
      keep({ body, result: null });
      this.form.done(asked, answer.generated);
      this.results.mark("");
      this.chooseHead();
      void this.predict();
    } catch (error) {
      if (!signal.aborted) this.fail(this.form.alert, error);
    } finally {
      this.end(signal);
    }
  }

  /** Open a result; whether that worked. */
  private async open(id: string, name: string, alert: Alert): Promise<boolean> {
    const signal = this.begin(alert);
    try {
      const answer = await post<{ view: string }>("/api/open", { id }, signal);
      await this.show(answer.view, { view: "result" }, signal);
      this.shown = null;
      keep({ result: { id, name } });
      this.form.done(null, []);
      this.results.mark(id);
      this.chooseHead();
      void this.predict();
      return true;
    } catch (error) {
      if (!signal.aborted) this.fail(alert, error);
      return signal.aborted;
    } finally {
      this.end(signal);
    }
  }

  /** Give up what is under way, and begin something else. */
  private begin(alert: Alert): AbortSignal {
    this.pending?.abort();
    this.pending = new AbortController();
    alert.show("");
    this.place.setAttribute("aria-busy", "true");
    this.sayWork();
    return this.pending.signal;
  }

  private end(signal: AbortSignal): void {
    if (this.pending?.signal !== signal) return;
    this.pending = null;
    this.place.removeAttribute("aria-busy");
    this.working.hidden = true;
    this.form.say(null);
    this.empty.textContent = NOTHING;
  }

  private cancel(): void {
    const { pending } = this;
    pending?.abort();
    if (pending) this.end(pending.signal);
  }

  private fail(alert: Alert, error: unknown): void {
    alert.show(sentence(error));
    this.foldSide(false);
  }

  private sayWork(): void {
    if (!this.pending) return;
    const text = `${this.work || "Working"} …`;
    this.form.say(text);
    this.empty.textContent = text;
    this.working.hidden = this.form.element.offsetParent !== null; // said beside the button already
    this.working.textContent = text;
  }

  /** Show a view of the server in the viewer, which keeps its state where that fits. */
  private async show(view: string, change: Partial<State>, signal: AbortSignal): Promise<void> {
    const header = await get<Header>(`/api/views/${encodeURIComponent(view)}/header`, signal);
    this.header = header;
    if (this.source && this.mounted) {
      this.source.replace(view, header);
      await new Promise((resolve) => setTimeout(resolve)); // the viewer has read the header then
      this.mounted.set(change);
    } else {
      this.source = new StudioSource(view, header);
      const kept = parseFragment(location.hash);
      const wanted = Object.fromEntries(Object.entries(change).filter(([name]) => !(name in kept)));
      this.mounted = mount(this.place, this.source, { host: "studio", url: true, keys: [["O", "switch the head off, or on again"]], initial: wanted, onState: () => this.onState() });
      await this.mounted.ready;
    }
    this.onState();
  }

  private onState(): void {
    this.followTheme();
    this.chooseHead();
  }

  private followTheme(): void {
    this.root.dataset["theme"] = resolveTheme(this.mounted?.state.theme ?? parseFragment(location.hash).theme ?? "auto");
  }

  /** Tell the panel which head of the model the viewer shows. */
  private chooseHead(): void {
    const state = this.mounted?.state;
    const sheet = state ? this.header?.sheets[state.sheet] : undefined;
    const merged = sheet?.lenses.find((lens) => lens.name === state?.lens)?.merged;
    const known = this.shown && state && sheet && !merged;
    const site = !sheet || sheet.site === "self" ? "" : `${sheet.site}.`;
    this.off.choose(known ? `${site}L${state.layer}H${state.head}` : null);
  }

  private changeOff(maps: boolean): void {
    if (!this.shown) return;
    keep({ body: { ...this.shown, ...this.off.value } });
    const before = this.shown.showOff;
    if (!maps) void this.predict();
    else void this.look(this.askedNow(this.shown)).then(() => before || this.showSideBySide());
  }

  /** Show the maps of the chosen sheet beside those without the heads that are off. */
  private showSideBySide(): void {
    const sheets = this.header?.sheets ?? [];
    const first = sheets[this.mounted?.state.sheet ?? 0];
    const second = sheets.findIndex((sheet) => sheet.site === first?.site && sheet.model.startsWith(`${first.model} with `));
    if (second >= 0) this.mounted?.set({ view: "models", second });
  }

  /** What is on the screen, rather than what the form says by now. */
  private askedNow({ text, pair, models, lenses, target, generate }: LookBody): Asked {
    return { text, pair, models, lenses, target, generate };
  }

  /** Show what the models predict, and what they predict without the heads that are off. */
  private async predict(): Promise<void> {
    this.predicting?.abort();
    const { signal } = (this.predicting = new AbortController());
    const { off } = this.off.value;
    this.tabs.rename("off", off.length ? `Heads off · ${off.length}` : "Heads off");
    this.off.alert.show("");
    if (!this.shown) return this.off.show(null);
    this.off.wait();
    try {
      const body = { ...this.askedNow(this.shown), lenses: [], ...this.off.value };
      this.off.show((await post<{ predictions: Prediction[] }>("/api/predict", body, signal)).predictions);
    } catch (error) {
      if (signal.aborted) return;
      this.off.show(null);
      this.off.alert.show(sentence(error));
    }
  }

  private onEvent(event: StudioEvent): void {
    this.work = event.work;
    this.sayWork();
    this.jobs.merge(event.jobs, event.whole);
  }

  private onJobs(): void {
    const { active } = this.jobs;
    this.tabs.rename("run", active ? `Run · ${active}` : "Run");
    void this.results.refresh();
  }

  private onPanel(name: string): void {
    keep({ panel: name });
    if (name === "results" || name === "run") void this.results.refresh();
  }

  private onKey(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && this.side.contains(target)) this.focusViewer();
    const typing = target.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea, select");
    const viewing = this.place.contains(target) || target === document.body;
    if (event.key.toLowerCase() !== "o" || !viewing || typing) return;
    this.chooseHead(); // the panel is told of a head only when that is drawn
    this.off.toggle();
  }

  private focusViewer(): void {
    this.place.querySelector<HTMLElement>(".headscope-viewer")?.focus({ preventScroll: true });
  }

  private toggleSide(): void {
    this.foldSide(!this.side.hidden);
  }

  private foldSide(hidden: boolean): void {
    this.side.hidden = hidden;
    const label = hidden ? "Show the panel" : "Hide the panel";
    this.hide.textContent = hidden ? "»" : "«";
    this.hide.title = label;
    this.hide.setAttribute("aria-label", label);
    this.hide.setAttribute("aria-expanded", String(!hidden));
    keep({ hidden });
  }
}
