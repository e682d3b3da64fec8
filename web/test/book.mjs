// Tests the book's site in Debian's Chromium: `node book.mjs SITE FOLDER`. Pages are opened as files, and must not
// send a request to a network address. The accessibility checker axe-core must find no serious fault in light and dark
// colours, on a wide screen and on a phone's screen. Screenshots are written to FOLDER.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import puppeteer from "puppeteer-core";

const [site, folder] = process.argv.slice(2);
/**
 * The tested pages. Among them are prose with commands, a long page of code, large tables, an embedded frame and a list
 * of links.
 */
const PAGES = ["index", "tutorial", "command", "equipoise", "playground", "beside-others"];
/** The colour themes in the book's menu. They are tested on the page `THEMED`, which has code, tables and links. */
const THEMES = ["light", "rust", "coal", "navy", "ayu"];
const THEMED = "library";
const SIZES = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
];

mkdirSync(folder, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const address = (page) => pathToFileURL(resolve(site, `${page}.html`)).href;

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
try {
  const tab = await browser.newPage();
  tab.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  tab.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()}`));
  tab.on("request", (request) => /^(file|blob|data):/.test(request.url()) || faults.push(`request: ${request.url()}`));
  for (const page of PAGES) {
    for (const size of SIZES) {
      for (const scheme of ["light", "dark"]) await reads(tab, page, size, scheme);
    }
  }
  for (const theme of THEMES) {
    await tab.evaluate((theme) => localStorage.setItem("mdbook-theme", theme), theme);
    await tab.goto(address(THEMED));
    await isAccessible(tab, `${THEMED} in ${theme}`);
  }
  await tab.evaluate(() => localStorage.removeItem("mdbook-theme"));
  await finds(tab);
} finally {
  await browser.close();
}
assert.deepEqual(faults, []);
console.log(`the book: ${PAGES.length} pages, all went well; pictures are in ${folder}`);

/**
 * Opens a page with the given screen size and colour scheme. Checks the width, colours and accessibility of the page.
 */
async function reads(tab, page, size, scheme) {
  const name = `${page}-${size.width}-${scheme}`;
  await tab.setViewport(size);
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await tab.goto(address(page));
  const dark = await tab.evaluate(() => getComputedStyle(document.body).colorScheme === "dark" || document.documentElement.classList.contains("navy"));
  if (dark !== (scheme === "dark")) faults.push(`${name}: it is not ${scheme}`);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) faults.push(`${name}: ${wide} px too wide`);
  await tab.screenshot({ path: join(folder, `${name}.png`) });
  await isAccessible(tab, name);
}

async function isAccessible(tab, name) {
  await tab.evaluate(axe);
  // Do not let axe-core load style sheets, because a page that was opened as a file may not read other files.
  const { violations } = await tab.evaluate(() => window.axe.run({ preload: false }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  faults.push(...serious.map(({ id, nodes }) => `${name}: ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 200)}`));
}

/** Checks that the book's search finds a page with the searched word, even if the book is opened as files. */
async function finds(tab) {
  await tab.setViewport(SIZES[0]);
  await tab.goto(address("index"));
  await tab.click("#mdbook-search-toggle");
  await tab.type("#mdbook-searchbar", "propagation");
  await tab.waitForSelector("#mdbook-searchresults li a");
  await Promise.all([tab.waitForNavigation(), tab.click("#mdbook-searchresults li a")]);
  const found = await tab.$eval("main", (main) => main.textContent.includes("propagation"));
  if (!found) faults.push("the search leads to a page without the word");
}
