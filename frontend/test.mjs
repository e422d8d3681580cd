/*
 * Bundles each test/*.test.ts into a temporary folder and runs them with Node's own runner.
 *
 * node test.mjs            all tests
 * node test.mjs heads      those whose file begins with a name
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const wanted = process.argv[2] ?? "";
const names = (await readdir(path.join(here, "test"))).filter((name) => name.startsWith(wanted) && name.endsWith(".test.ts"));
if (!names.length) throw new Error(`There is no test that begins with "${wanted}" in frontend/test.`);

const folder = await mkdtemp(path.join(tmpdir(), "headscope-viewer-"));
try {
  await build({
    absWorkingDir: here,
    entryPoints: names.map((name) => `test/${name}`),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    logLevel: "warning",
  });
  const files = names.map((name) => path.join(folder, name.replace(/\.ts$/, ".mjs")));
  process.exitCode = spawnSync(process.execPath, ["--enable-source-maps", "--test", "--test-reporter=spec", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(folder, { recursive: true });
}
