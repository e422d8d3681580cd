/** What leaves the viewer: pictures, numbers, the Python lines, and a link. */
import { FONT, forceRatio } from "./canvas";
import { csvLine } from "./format";
import { decodeBase64 } from "./page";
import type { OpenView, Table, Viewer } from "./types";

const EXPORT_RATIO = 2;
const [WORDS, LINE] = [`12px ${FONT}`, 16];
/** Words of a view that are no part of its picture. */
const CONTROLS = ".hs-tools, .hs-tip, .hs-hidden, .hs-button:not(:has(.hs-badge))";

/** Give a file to the browser's downloads. */
export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A file name that says what is in the file. */
export function fileName(viewer: Viewer, ending: string): string {
  const { state, header } = viewer;
  const sheet = header.sheets[state.sheet];
  const head = ["head", "compare", "models"].includes(state.view) ? `L${state.layer}H${state.head}` : "";
  const lens = state.view === "layers" || state.view === "result" ? "" : state.lens;
  const parts = [sheet?.model ?? header.title, state.view, lens, head].filter(Boolean).join("-");
  return `${parts.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80)}.${ending}`;
}

/** A table as CSV with a header line. */
export function toCsv(table: Table): string {
  return [table.columns, ...table.rows].map(csvLine).join("\r\n") + "\r\n";
}

/** Copy text; without permission for the clipboard, by a selected text field. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** All canvases and words of a view at twice their size, where they are on the screen, below a title. */
export async function toPng(viewer: Viewer, view: OpenView, element: HTMLElement, drawn: () => Promise<void>): Promise<Blob> {
  try {
    forceRatio(EXPORT_RATIO);
    const wait = drawn();
    view.update();
    await wait;
    element.classList.add("hs-whole"); // nothing scrolls
    const picture = view.png ? await view.png() : combineCanvases(viewer, view, element);
    return encodePng(picture);
  } finally {
    forceRatio(null);
    element.classList.remove("hs-whole");
    const again = drawn();
    view.update();
    await again;
  }
}

/** Text in lines that are no wider than `width`, as far as its words allow. */
export function wrap(text: string, width: number, measure: (text: string) => number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && measure(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** A canvas as PNG, at once: `toBlob` waits for idle time, which may take seconds. */
function encodePng(picture: HTMLCanvasElement): Blob {
  const [kind, text] = picture.toDataURL("image/png").split(",");
  if (!kind?.startsWith("data:image/png") || !text) throw new Error("the browser made no picture");
  return new Blob([decodeBase64(text)], { type: "image/png" });
}

function combineCanvases(viewer: Viewer, view: OpenView, element: HTMLElement): HTMLCanvasElement {
  const margin = 16;
  const frame = element.getBoundingClientRect();
  const picture = document.createElement("canvas");
  const canvases = [...element.querySelectorAll("canvas")];
  const width = Math.max(frame.width, ...canvases.map((canvas) => canvas.getBoundingClientRect().right - frame.left));
  const context = picture.getContext("2d")!;
  context.font = WORDS;
  const lines = wrap(view.describe(), width, (text) => context.measureText(text).width);
  const top = 42 + LINE * lines.length;
  picture.width = (width + 2 * margin) * EXPORT_RATIO;
  picture.height = (frame.height + top + margin) * EXPORT_RATIO;
  context.scale(EXPORT_RATIO, EXPORT_RATIO);
  context.fillStyle = viewer.palette.background;
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = viewer.palette.ink;
  context.font = `600 15px ${FONT}`;
  context.fillText(viewer.header.title, margin, 24, width);
  context.fillStyle = viewer.palette.quiet;
  context.font = WORDS;
  lines.forEach((line, index) => context.fillText(line, margin, 43 + LINE * index));
  for (const canvas of canvases) {
    const box = canvas.getBoundingClientRect();
    if (box.width && box.height)
      context.drawImage(canvas, box.left - frame.left + margin, box.top - frame.top + top, box.width, box.height);
  }
  context.translate(margin - frame.left, top - frame.top);
  drawWords(context, element);
  return picture;
}

/** Draw titles, notes and legends where they are on the screen, word by word, as the browser broke their lines. */
function drawWords(context: CanvasRenderingContext2D, element: HTMLElement): void {
  for (const box of element.querySelectorAll(".hs-instead, .hs-badge")) {
    const { left, top, width, height } = box.getBoundingClientRect();
    context.fillStyle = getComputedStyle(box).backgroundColor;
    context.fillRect(left, top, width, height);
  }
  context.textBaseline = "middle";
  const [texts, range] = [document.createTreeWalker(element, NodeFilter.SHOW_TEXT), document.createRange()];
  while (texts.nextNode()) {
    const text = texts.currentNode as Text;
    if (text.parentElement!.closest(CONTROLS)) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(text.parentElement!);
    [context.fillStyle, context.font] = [color, `${fontWeight} ${fontSize} ${FONT}`];
    for (const word of text.data.matchAll(/\S+/g)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const box = range.getClientRects()[0]; // none where it is hidden
      if (box) context.fillText(word[0], box.left, box.top + box.height / 2);
    }
  }
}
