// Puts the page together: `node build.mjs FOLDER FILE`, where FOLDER has what wasm-bindgen made. One file, which asks for nothing else.

import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const [folder, file] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const source = (name) => join(here, "src", name);

/** A script and what it imports, in one text that stands within HTML. */
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
