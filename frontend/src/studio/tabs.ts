/** Tabs of panels. */
import { make, makeButton } from "../dom";

export interface Tab {
  name: string;
  title: string;
  content: HTMLElement;
}

/** A list of tabs, and the panel of the chosen one. */
export class Tabs {
  readonly list = make("div", "hs-tabs", { role: "tablist", "aria-label": "Panels" });
  readonly panels: HTMLElement[];
  onChange: (name: string) => void = () => {};
  private readonly buttons: HTMLButtonElement[];

  constructor(private readonly tabs: readonly Tab[]) {
    this.buttons = tabs.map((tab, index) => this.makeButton(tab, index));
    this.panels = tabs.map((tab) =>
      make("div", "hs-panel", { role: "tabpanel", id: `hs-panel-${tab.name}`, "aria-labelledby": `hs-tab-${tab.name}` }, tab.content),
    );
    this.list.append(...this.buttons);
    this.choose(tabs[0]!.name);
  }

  private makeButton(tab: Tab, index: number): HTMLButtonElement {
    const button = makeButton(tab.title, () => this.choose(tab.name), { role: "tab", class: "hs-tab", id: `hs-tab-${tab.name}`, "aria-controls": `hs-panel-${tab.name}` });
    button.addEventListener("keydown", (event) => {
      const last = this.tabs.length - 1;
      const goal = { ArrowRight: index === last ? 0 : index + 1, ArrowLeft: index ? index - 1 : last, Home: 0, End: last }[event.key];
      if (goal === undefined) return;
      event.preventDefault();
      this.choose(this.tabs[goal]!.name);
      this.buttons[goal]!.focus();
    });
    return button;
  }

  /** Show a panel; a name that no panel has changes nothing. */
  choose(name: string): void {
    if (!this.tabs.some((tab) => tab.name === name)) return;
    this.tabs.forEach((tab, index) => {
      const chosen = tab.name === name;
      this.buttons[index]!.setAttribute("aria-selected", String(chosen));
      this.buttons[index]!.tabIndex = chosen ? 0 : -1;
      this.panels[index]!.hidden = !chosen;
    });
    this.onChange(name);
  }

  /** Change the title of a tab. */
  rename(name: string, title: string): void {
    const button = this.buttons[this.tabs.findIndex((tab) => tab.name === name)];
    if (button && button.textContent !== title) button.textContent = title;
  }
}
