/** What the studio's server answers, and how it is asked. */
import type { Header, Source } from "../types";

export interface Parameter {
  name: string;
  type: "choice" | "bool" | "int" | "float" | "text" | "list" | "file";
  choices: string[] | null;
  default: string;
  optional: boolean;
  about: string;
}

/** A lens, statistic, edit or study that can be chosen. */
export interface Entry {
  name: string;
  about: string;
  parameters: Parameter[];
  gradient?: boolean;
  default?: boolean;
}

export interface Catalog {
  lenses: Entry[];
  statistics: Entry[];
  edits: Entry[];
  studies: Entry[];
  datasets: string[];
  models: { id: string; name: string }[];
  version: string;
  folder: string;
  example: string;
  limits: { letters: number; models: number; newTokens: number };
}

/** A model of the list, or a hub id or a folder. */
export type ModelValue = { id: string } | { name: string };
export type ParameterValue = string | boolean;

export interface Chosen {
  name: string;
  parameters: Record<string, ParameterValue>;
}

export interface LookBody {
  text: string;
  pair: string | null;
  models: ModelValue[];
  lenses: Chosen[];
  target: string | null;
  generate: number;
  off: string[];
  edit: string;
  showOff: boolean;
}

export interface LookAnswer {
  view: string;
  generated: string[];
}

/** What one model predicts; `rows` and `cosine` compare it with some heads switched off. */
export interface Prediction {
  model: string;
  kind: "classes" | "mask" | "next" | "number" | "vector";
  before: [string, number][];
  rows?: [string, number, number][];
  cosine?: number;
  note: string;
}

export interface StudioFile {
  id: string;
  name: string;
  kind: "result" | "data" | "model";
  bytes: number;
  changed: number;
}

export interface Job {
  id: string;
  title: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  progress: { done: number; total: number; unit: string; rate: number | null } | null;
  message: string;
  lines: string[];
  result: string | null;
  resumable: boolean;
}

const SILENT = "The studio does not answer. It may have been stopped: look at the terminal in which it was started.";

async function request(path: string, options: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw options.signal?.aborted ? error : new Error(SILENT);
  }
  if (response.ok) return response;
  const said = (await response.json().catch(() => null)) as { error?: unknown } | null;
  throw new Error(typeof said?.error === "string" ? said.error : `The studio answered with code ${response.status}.`);
}

/** Read something; an error is the server's sentence. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, { signal: signal ?? null })).json() as Promise<T>;
}

/** Ask for something to be done; an error is the server's sentence. */
export async function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Headscope": "1" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null })).json() as Promise<T>;
}

/** The sentence of an error. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A view that the server keeps; another one takes its place when it is shown. */
export class StudioSource implements Source {
  private readonly listeners = new Set<() => void>();

  constructor(private id: string, private content: Header) {}

  /** Show another view. */
  replace(id: string, content: Header): void {
    [this.id, this.content] = [id, content];
    for (const listener of [...this.listeners]) listener();
  }

  async header(): Promise<Header> {
    return this.content;
  }

  async block(name: string): Promise<ArrayBuffer> {
    return (await request(`/api/views/${encodeURIComponent(this.id)}/block?name=${encodeURIComponent(name)}`, {})).arrayBuffer();
  }

  watch(callback: () => void): () => void {
    this.listeners.add(callback);
    return () => this.listeners.delete(callback);
  }
}
