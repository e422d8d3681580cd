/** Light or dark: the viewer's own switch, else the notebook's theme, else the system's. */
import type { Theme } from "./colors";
import type { State } from "./types";

/** The theme that is drawn. */
export function resolveTheme(wanted: State["theme"]): Theme {
  if (wanted !== "auto") return wanted;
  const body = document.body;
  const jupyter = body?.dataset["jpThemeLight"];
  if (jupyter !== undefined) return jupyter === "false" ? "dark" : "light";
  if (body?.dataset["vscodeThemeKind"]) return body.dataset["vscodeThemeKind"].includes("dark") ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Call a function when the system or the notebook changes its theme; returns a function that ends this. */
export function watchTheme(callback: () => void): () => void {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", callback);
  const observer = new MutationObserver(callback);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  return () => {
    query.removeEventListener("change", callback);
    observer.disconnect();
  };
}
