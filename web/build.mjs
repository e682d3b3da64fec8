// Builds the playground's page: `node build.mjs FOLDER FILE`. FOLDER has the output of wasm-bindgen, and FILE is the
// page to write. The page is a single HTML file that loads no other file.

import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const [folder, file] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const source = (name) => join(here, "src", name);

/** Bundles a script and its imports into one text that can be part of an HTML page. */
async function bundled(name) {
  const made = await build({ entryPoints: [source(name)], bundle: true, minify: true, format: "iife", write: false });
  return made.outputFiles[0].text.replaceAll("</script", "<\\/script");
}

const glue = await readFile(join(folder, "equipoise_web.js"), "utf8");
const worker = await readFile(source("worker.js"), "utf8");
const uplot = await readFile(join(here, "node_modules/uplot/dist/uPlot.min.css"), "utf8");
const parts = {
  style: uplot + (await readFile(source("style.css"), "utf8")),
  wasm: gzipSync(await readFile(join(folder, "equipoise_web_bg.wasm")), { level: 9 }).toString("base64"),
  worker: (glue + worker).replaceAll("</script", "<\\/script"),
  script: await bundled("main.js"),
};
const template = await readFile(source("index.html"), "utf8");
const page = template.replace(/\/\*(style|wasm|worker|script)\*\//g, (_, part) => parts[part]);
await writeFile(file, page);
