/** The viewer of headscope: a static page, a notebook widget, the studio and the atlas are one bundle. */
import { mount } from "./app";
import { mountAtlas } from "./atlas";
import { PageSource } from "./page";
import { mountStudio } from "./studio";
import type { Mounted } from "./types";
import { render } from "./widget";

export { mount, mountAtlas, mountStudio };
export type * from "./types";
export default { render };

/** Show the static page that this script is part of. */
export function mountPage(element: HTMLElement | null = document.getElementById("headscope-root")): Mounted {
  if (!element) throw new Error("The page has no element headscope-root.");
  return mount(element, new PageSource(), { host: "page", url: true });
}

function start(): void {
  const studio = document.getElementById("headscope-studio");
  const atlas = document.getElementById("headscope-atlas");
  if (document.getElementById("headscope-header")) mountPage();
  else if (studio) mountStudio(studio);
  else if (atlas) mountAtlas(atlas);
}

start();
