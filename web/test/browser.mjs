// Functions that all tests in Debian's Chromium use.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import puppeteer from "puppeteer-core";

/** The displays on which a page is tested: a desktop and a phone, each in light and dark colours. */
export const SHOTS = [
  { width: 1280, height: 900, scheme: "light" },
  { width: 1280, height: 900, scheme: "dark" },
  { width: 390, height: 844, scheme: "light" },
  { width: 390, height: 844, scheme: "dark" },
];

/** Calls `use` with a new tab. The test fails if the page has an error or sends a request to a network address. */
export async function inChromium(use) {
  const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const tab = await browser.newPage();
    const faults = [];
    tab.on("pageerror", (error) => faults.push(`error: ${error.message}`));
    tab.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()}`));
    tab.on("request", (request) => /^(file|blob|data):/.test(request.url()) || faults.push(`request: ${request.url()}`));
    await tab.setViewport(SHOTS[0]);
    await use(tab, browser);
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

/** Checks that the accessibility checker axe-core finds no serious fault. */
export async function isAccessible(tab) {
  await tab.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await tab.evaluate(() => window.axe.run());
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
}

/** Shows the page on each display, checks that it is not wider than the display, calls `look`, and takes a
 * screenshot. */
export async function photographs(tab, folder, name, look = async () => {}) {
  for (const { width, height, scheme } of SHOTS) {
    await tab.setViewport({ width, height });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `at ${width} px ${name} is ${wide} px too wide`);
    await look(width);
    await tab.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`), fullPage: true });
  }
  await tab.setViewport(SHOTS[0]);
}
