/*
 * Bundles src/index.ts into ../src/headscope/static/viewer.js (an ES module) and src/style.css into viewer.css.
 *
 * node build.mjs            write both files
 * node build.mjs --check    build in memory and compare with the committed files, byte by byte
 *
 * The first line of viewer.js is "/* headscope viewer · sources sha256:<hex> *" + "/". The hash is SHA-256 over the
 * files src/** (every file, at any depth), build.mjs, package-lock.json and tsconfig.json, sorted by their paths
 * relative to this folder (POSIX separators, compared as UTF-8 bytes). Each file adds its relative path, a line feed,
 * and its bytes. tests/viewer/test_bundle.py computes the same.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(here, "../src/headscope/static");
const others = ["build.mjs", "package-lock.json", "tsconfig.json"];

async function listSources() {
  const entries = await readdir(path.join(here, "src"), { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(here, path.join(entry.parentPath ?? entry.path, entry.name)).split(path.sep).join("/"));
  return [...files, ...others].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

async function hashSources() {
  const hash = createHash("sha256");
  for (const file of await listSources()) {
    hash.update(`${file}\n`);
    hash.update(await readFile(path.join(here, file)));
  }
  return hash.digest("hex");
}

async function bundle(entry, banner) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022", "chrome109", "firefox110", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
    write: false,
    logLevel: "warning",
  });
  return Buffer.concat([Buffer.from(banner), Buffer.from(result.outputFiles[0].contents)]);
}

const outputs = {
  "viewer.js": await bundle("src/index.ts", `/* headscope viewer · sources sha256:${await hashSources()} */\n`),
  "viewer.css": await bundle("src/style.css", ""),
};

if (process.argv.includes("--check")) {
  for (const [name, bytes] of Object.entries(outputs)) {
    const committed = await readFile(path.join(target, name)).catch(() => Buffer.alloc(0));
    if (!bytes.equals(committed)) {
      console.error(`${name} is stale: it differs from what its sources give. Run npm run build and commit it.`);
      process.exitCode = 1;
    }
  }
  if (!process.exitCode) console.log("viewer.js and viewer.css are what their sources give.");
} else {
  await mkdir(target, { recursive: true });
  for (const [name, bytes] of Object.entries(outputs)) {
    await writeFile(path.join(target, name), bytes);
    console.log(`${name}: ${(bytes.length / 1000).toFixed(1)} kB`);
  }
}
