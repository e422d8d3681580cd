/** The viewer in a notebook, by anywidget. */
import { mount } from "./app";
import type { Header, Source, State } from "./types";

/** What anywidget gives as a model. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(message: unknown): void;
  on(event: string, callback: (...values: never[]) => void): void;
  off(event: string, callback: (...values: never[]) => void): void;
}

interface Answer {
  ticket?: string;
  error?: string;
}

/** A source that asks Python for blocks, each by a ticket that no other front end of the same widget uses. */
export class WidgetSource implements Source {
  private readonly waiting = new Map<string, { resolve(buffer: ArrayBuffer): void; reject(error: Error): void }>();
  private readonly name = Math.random().toString(36).slice(2);
  private count = 0;
  private readonly receive = (answer: Answer, buffers: (DataView | ArrayBuffer | Uint8Array)[]): void => {
    const request = answer?.ticket === undefined ? undefined : this.waiting.get(answer.ticket);
    if (!request) return;
    this.waiting.delete(answer.ticket!);
    const buffer = buffers?.[0];
    if (answer.error !== undefined || !buffer) request.reject(new Error(answer.error ?? "Python sent no data."));
    else request.resolve(toArrayBuffer(buffer));
  };

  constructor(private readonly model: WidgetModel) {
    model.on("msg:custom", this.receive as never);
  }

  async header(): Promise<Header> {
    const header = this.model.get("header");
    return (typeof header === "string" ? JSON.parse(header) : header) as Header;
  }

  block(name: string): Promise<ArrayBuffer> {
    const ticket = `${this.name}-${++this.count}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(ticket, { resolve, reject });
      this.model.send({ type: "block", name, ticket });
    });
  }

  watch(callback: () => void): () => void {
    this.model.on("change:header", callback as never);
    return () => this.model.off("change:header", callback as never);
  }

  close(): void {
    this.model.off("msg:custom", this.receive as never);
  }
}

function toArrayBuffer(buffer: DataView | ArrayBuffer | Uint8Array): ArrayBuffer {
  if (buffer instanceof ArrayBuffer) return buffer;
  return buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength) as ArrayBuffer;
}

const TRAITS = ["sheet", "view", "lens", "layer", "head", "token"] as const;

function fromTraits(model: WidgetModel): Partial<State> {
  const change: Record<string, unknown> = {};
  for (const name of TRAITS) {
    const value = model.get(name);
    if (value === undefined || value === null || value === "") continue;
    if (name === "token") change["tokens"] = (value as number) >= 0 ? [value] : [];
    else change[name] = value;
  }
  return change as Partial<State>;
}

/** Render a widget; returns its end. */
export function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const source = new WidgetSource(model);
  const onState = (state: State): void => {
    const values: Record<string, unknown> = { ...state, token: state.tokens[0] ?? -1 };
    const changed = TRAITS.filter((name) => model.get(name) !== undefined && model.get(name) !== values[name]);
    for (const name of changed) model.set(name, values[name]);
    if (changed.length) model.save_changes();
  };
  const height = model.get("height");
  const mounted = mount(el, source, { host: "notebook", initial: fromTraits(model), onState, ...(typeof height === "number" && height > 0 ? { height } : {}) });
  const listeners = TRAITS.map((name) => {
    const listener = (): void => {
      const { [name === "token" ? "tokens" : name]: value } = fromTraits(model);
      if (name !== "token") return mounted.set({ [name]: value });
      if ((mounted.state.tokens[0] ?? -1) !== model.get("token")) mounted.set({ tokens: (value as number[]) ?? [] });
    };
    model.on(`change:${name}`, listener as never);
    return () => model.off(`change:${name}`, listener as never);
  });
  return () => {
    for (const end of listeners) end();
    source.close();
    mounted.destroy();
  };
}
