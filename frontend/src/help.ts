/** The dialog that lists all keys. */
import { make, makeButton } from "./dom";
import type { View } from "./types";

const keys: readonly [string, string][] = [
  ["← →", "previous and next head"],
  ["↑ ↓", "previous and next layer"],
  ["Enter", "open the head that is outlined in the grid"],
  ["L", "next lens"],
  ["D (hold)", "show the difference from the other lens"],
  [", .", "previous and next token"],
  ["Shift + arrows", "move the crosshair over the map, with its value"],
  ["Space", "select the token of the crosshair, or remove it"],
  ["Escape", "clear the selection, or go back to the grid"],
  ["X", "weights from a token, or weights to it"],
  ["C", "one color scale for all lenses, or one for each"],
  ["W", "merge the pieces of words"],
  ["S", "show or hide special tokens"],
  ["[ ]", "move the window of tokens"],
  ["+ −", "fewer or more tokens in the window"],
  ["/", "search tokens"],
  ["T", "table of the numbers that are drawn"],
  ["E", "export"],
  ["?", "this help"],
];

/** Make the dialog; it is opened by `showModal`. */
export function makeHelp(views: readonly View[], more: readonly [string, string][] = []): HTMLDialogElement {
  const list = make("dl", "hs-keys");
  const rows: [string, string][] = [...views.map((view): [string, string] => [view.key, view.title]), ...keys, ...more];
  for (const [key, text] of rows) list.append(make("dt", "", {}, make("kbd", "", {}, key)), make("dd", "", {}, text));
  const dialog = make("dialog", "hs-help", { "aria-label": "Keyboard" }, make("h3", "", {}, "Keyboard"), list);
  dialog.append(makeButton("Close", () => dialog.close()));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return dialog;
}
