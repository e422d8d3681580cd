/** Lines of Python that draw the same with headscope. */
import { variableName } from "./heads";
import type { Scalar, Sheet, State } from "./types";

type Value = string | number | boolean | readonly string[];

/** A call of hs.draw; options that are undefined are left out. */
export function drawCall(what: string, figure: string, options: Record<string, Value | undefined>): string {
  const words = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${toPython(value)}`]));
  return `hs.draw(${[what, JSON.stringify(figure), ...words].join(", ")})`;
}

/** A value as Python writes it. */
export function toPython(value: Value): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? JSON.stringify(value) : `[${value.map((part) => JSON.stringify(part)).join(", ")}]`;
}

export interface MapsName {
  what: string;
  lens: string | undefined;
}

/** The maps of one lens, by the name `maps` of the sheet's lines: a list, or a Dataset that holds all lenses. */
export function mapsOf(sheet: Sheet, lens: string, name = "maps"): MapsName {
  const index = sheet.lenses.findIndex((each) => each.name === lens);
  return isList(sheet) && index >= 0 ? { what: `${name}[${index}]`, lens: undefined } : { what: name, lens };
}

/** Maps with their words merged, as they are shown; of a Dataset, which has no words, as they are. */
export function withWords({ what, lens }: MapsName, { words }: Pick<State, "words">): string {
  return words && !lens ? `hs.to_words(${what})` : what;
}

/** What a figure shows that the viewer hides: nothing, or a comment. */
export function noteHidden({ special, count, words }: Pick<State, "special" | "count" | "words">, { lens }: MapsName): string {
  const parts = [special && !count ? "" : "of all tokens", words && lens ? "words are not merged" : ""].filter(Boolean);
  return parts.length ? `  # ${parts.join("; ")}` : "";
}

function isList(sheet: Sheet): boolean {
  return /^maps = \[/m.test(sheet.python);
}

const ofMaps = new Set(["share", "rank", "null", "residual", "at_bound", "same_for_sources"]);

/** The line that draws a number of every head: of the maps, of a result, or measured again on this text. */
export function headsCall(sheet: Sheet, scalar: Scalar): string {
  const [name, ...labels] = variableName(scalar).split(/ (?=\w+=|class$)/);
  const at = labels.filter((label) => label.includes("="));
  const options = { variable: name!, lens: scalar.lens ?? undefined, at: at.length ? at : undefined };
  if (/^data = /m.test(sheet.python)) return drawScalar("data", scalar, options);
  if (ofMaps.has(name!) && scalar.lens) return drawCall(mapsOf(sheet, scalar.lens).what, "heads", { variable: name!, lens: mapsOf(sheet, scalar.lens).lens });
  if (scalar.n !== null || scalar.classes || labels.length) return drawScalar('hs.open_result("result.nc")', scalar, options);
  const site = sheet.site === "self" ? "" : `, site=${JSON.stringify(sheet.site)}`;
  const lens = scalar.lens ? `, lens=${JSON.stringify(scalar.lens)}` : "";
  const known = /^model = /m.test(sheet.python);
  const edit = /^with hs\.edited\(model, (.+)\) as edited:$/m.exec(sheet.python)?.[1];
  const edited = edit ? `, edit=${edit}` : "";
  const call = drawCall(`hs.measure(model, ${known ? "trace.examples" : "texts"}, statistics=${JSON.stringify(name)}${lens}${site}${edited})`, "heads", { variable: name! });
  return known ? call : `# with the model of these maps and its texts: ${call}`;
}

function drawScalar(what: string, scalar: Scalar, options: { variable: string; lens: string | undefined; at: string[] | undefined }): string {
  return drawCall(what, scalar.classes ? "stacked_bars" : "heads", options);
}
