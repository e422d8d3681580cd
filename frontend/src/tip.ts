/** A small box beside the pointer. */
import { make } from "./dom";

/** Lines of text near the pointer; the first is bold. */
export class Tip {
  readonly element = make("div", "hs-tip", { hidden: true, "aria-hidden": "true" });

  constructor(private readonly host: HTMLElement) {
    host.append(this.element);
  }

  /** Show lines beside a point of the window. */
  show(x: number, y: number, lines: readonly string[]): void {
    const { element } = this;
    while (element.childElementCount < lines.length) element.append(make("div"));
    while (element.childElementCount > lines.length) element.lastElementChild!.remove();
    lines.forEach((line, index) => {
      const place = element.children[index]!;
      if (place.textContent !== line) place.textContent = line;
    });
    element.hidden = false;
    const frame = this.host.getBoundingClientRect();
    const [left, top] = [x - frame.left + 14, y - frame.top + 16];
    const turn = left + 240 > frame.width;
    element.style.left = turn ? "" : `${left}px`;
    element.style.right = turn ? `${Math.max(0, frame.width - left + 28)}px` : "";
    element.style.top = `${top}px`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
