import assert from "node:assert/strict";

/** Assert that two numbers are the same up to rounding. */
export function assertNear(found: number | undefined, wanted: number, error = 1e-9): void {
  assert.ok(found !== undefined && Math.abs(found - wanted) <= error, `${found} is not ${wanted} ± ${error}`);
}
