/** What the tests use of Node, so that its types need not be installed. */
declare module "node:assert/strict" {
  interface Assert {
    ok(value: unknown, message?: string): void;
    equal(found: unknown, wanted: unknown, message?: string): void;
    notEqual(found: unknown, wanted: unknown, message?: string): void;
    deepEqual(found: unknown, wanted: unknown, message?: string): void;
    match(found: string, wanted: RegExp, message?: string): void;
  }
  const assert: Assert;
  export default assert;
}

declare module "node:test" {
  export function describe(name: string, run: () => void): void;
  export function it(name: string, run: () => void | Promise<void>): void;
}
