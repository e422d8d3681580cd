/** Results in the folder: a list from which one is opened. */
import { make, makeButton } from "../dom";
import { count } from "../format";
import { get, sentence, type StudioFile } from "./api";
import { Alert } from "./controls";

/** The list of files, and the panel that shows the results among them. */
export class ResultsPanel {
  readonly element: HTMLElement;
  readonly alert = new Alert();
  onOpen: (file: StudioFile) => void = () => {};
  /** The list was read. */
  onList: () => void = () => {};
  files: StudioFile[] = [];
  private readonly list = make("ul", "hs-files", { "aria-label": "Results" });
  private readonly note = make("p", "hs-small", { role: "status" });
  private open = "";

  constructor(private readonly folder: string) {
    const refresh = makeButton("Refresh", () => void this.refresh());
    this.element = make("div", "hs-form", {}, make("div", "hs-do", {}, refresh, this.note), this.alert.element, this.list);
  }

  /** Read the list again. */
  async refresh(): Promise<void> {
    try {
      const { files, whole } = await get<{ files: StudioFile[]; whole: boolean }>("/api/files");
      this.files = files;
      const found = files.filter((file) => file.kind === "result");
      const cut = whole ? "" : " The folder has more files than are listed.";
      this.note.textContent = (found.length ? `${count(found.length, "result")} in ${this.folder}.` : `No results in ${this.folder} yet. Start a measurement under Run.`) + cut;
      this.alert.show("");
      this.show();
      this.onList();
    } catch (error) {
      this.alert.show(sentence(error));
    }
  }

  /** Mark the file that is on the screen. */
  mark(id: string): void {
    this.open = id;
    for (const button of this.list.querySelectorAll("button")) button.setAttribute("aria-current", String(button.value === id));
  }

  private show(): void {
    const focused = document.activeElement instanceof HTMLButtonElement && this.list.contains(document.activeElement) ? document.activeElement.value : "";
    const results = this.files.filter((file) => file.kind === "result");
    this.list.replaceChildren(...results.map((file) => make("li", "", {}, this.makeItem(file))));
    this.mark(this.open);
    if (focused) [...this.list.querySelectorAll("button")].find((button) => button.value === focused)?.focus();
  }

  private makeItem(file: StudioFile): HTMLElement {
    const button = makeButton("", () => this.onOpen(file), { value: file.id });
    const changed = new Date(1000 * file.changed);
    const facts = file.name.endsWith(".zarr") ? formatDate(changed) : `${formatDate(changed)}, ${formatBytes(file.bytes)}`;
    button.append(make("span", "hs-name", {}, file.name), make("span", "hs-small", {}, facts));
    return button;
  }
}

function formatDate(date: Date): string {
  return date.toLocaleString("en-US", { dateStyle: "medium", timeStyle: "short" });
}

/** "5.1 MB". */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const step = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const size = bytes / 1000 ** step;
  return `${step && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[step]!}`;
}
