/** What a page shows again after it is reloaded. */
import type { LookBody } from "./api";

export interface Memory {
  body?: LookBody;
  result?: { id: string; name: string } | null;
  panel?: string;
  hidden?: boolean;
}

const KEY = "headscope-studio";

/** Read what was kept; nothing where it cannot be read. */
export function recall(): Memory {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Memory;
    return kept && typeof kept === "object" ? kept : {};
  } catch {
    return {};
  }
}

/** Keep something more. */
export function keep(change: Memory): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...recall(), ...change }));
  } catch {
    // without storage, a reload begins with the example
  }
}
