/** Elements without markup: text is always text. */

type Attributes = Record<string, string | number | boolean | null | undefined>;

/** Make an element with a class, attributes and children; strings become text. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  attributes: Attributes = {},
  ...children: (Node | string | null)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  setAttributes(element, attributes);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Set attributes; false, null and undefined remove them, true sets them empty. */
export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** A button of type "button" that calls a function. */
export function makeButton(label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const button = make("button", "hs-button", { type: "button", ...attributes }, label);
  button.addEventListener("click", onClick);
  return button;
}

/** Replace the options of a select, and choose one; the element is left alone where nothing changed. */
export function setOptions(select: HTMLSelectElement, options: readonly (readonly [string, string])[], value: string): void {
  const key = JSON.stringify(options);
  if (select.dataset["options"] !== key) {
    select.replaceChildren(...options.map(([name, label]) => make("option", "", { value: name }, label)));
    select.dataset["options"] = key;
  }
  if (select.value !== value) select.value = value;
}

/** Call a function once before the next frame however often it is asked for. */
export function coalesce(action: () => void): (() => void) & { cancel(): void } {
  let frame = 0;
  const ask = (): void => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      action();
    });
  };
  return Object.assign(ask, { cancel: () => cancelAnimationFrame(frame) });
}
