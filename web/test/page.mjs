// Tests the playground's page in Debian's Chromium: `node page.mjs PAGE COMMAND FOLDER`. The page is opened as a file,
// and must not send a request to a network address. The page must show the results that the program COMMAND computes
// for the scenario that the page exports. Screenshots are written to FOLDER.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { inChromium, isAccessible, photographs } from "./browser.mjs";

const [page, command, folder] = process.argv.slice(2);
/**
 * Expected frame rate at ten times real time, without a graphics processor. `least` is the limit of the test, because a
 * busy machine may reach only a third of `wanted`.
 */
const FRAMES_PER_S = { wanted: 30, least: 10 };

const downloads = resolve(folder, "saved");
rmSync(downloads, { recursive: true, force: true });
mkdirSync(downloads, { recursive: true });

await inChromium(async (tab, browser) => {
  const devtools = await browser.target().createCDPSession();
  await devtools.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads, eventsEnabled: true });
  await tab.goto(pathToFileURL(page).href);
  await settled(tab);

  await runs(tab);
  await isPulledAt(tab);
  await compares(tab);
  await saysWhatTheCommandSays(tab);
  await isShared(tab, browser);
  await isAccessible(tab);
  await photographs(tab, folder, "page");
});
console.log("the page: all went well");

/** Waits until the page has calculated the requested run and shows its results. */
async function settled(tab) {
  await tab.waitForFunction(() => !document.body.hasAttribute("aria-busy") && document.querySelectorAll("#figures td").length > 1);
}

function text(tab, selector) {
  return tab.$eval(selector, (element) => element.textContent);
}

async function set(tab, selector, value) {
  await tab.$eval(
    selector,
    (element, value) => {
      element.value = value;
      element.dispatchEvent(new Event("input", { bubbles: true }));
      element.dispatchEvent(new Event("change", { bubbles: true }));
    },
    String(value),
  );
}

/** Checks that the demo is shown with a high frame rate at ten times real time. */
async function runs(tab) {
  await set(tab, "#speed", 10);
  await tab.click("#play");
  const frames = await tab.evaluate(
    () =>
      new Promise((resolve) => {
        let count = 0;
        const begin = performance.now();
        const frame = (at) => (at - begin > 2000 ? resolve((1000 * count) / (at - begin)) : (count++, requestAnimationFrame(frame)));
        requestAnimationFrame(frame);
      }),
  );
  await tab.click("#play");
  const passed = Number.parseFloat(await text(tab, "#clock"));
  console.log(`${frames.toFixed(0)} frames a second at 10 x (wanted: ${FRAMES_PER_S.wanted}); ${passed} s passed`);
  assert.ok(frames >= FRAMES_PER_S.least, `${frames} frames a second`);
  assert.ok(passed > 5, `${passed} s passed in 2 s`);
}

/** Checks that a change of the link affects only the time after the change. */
async function isPulledAt(tab) {
  await set(tab, "#moment", 20);
  const before = await series(tab);
  for (const [slider, place] of [["#capacity", 300], ["#loss", 20]]) {
    const figures = await text(tab, "#figures");
    await set(tab, slider, place);
    await tab.waitForFunction((was) => document.querySelector("#figures").textContent !== was, {}, figures);
    await settled(tab);
  }
  const after = await series(tab);
  const rows = before.findIndex((row) => Number(row.split(",")[1]) > 20);
  assert.ok(rows > 100, `${rows} rows`);
  assert.deepEqual(after.slice(0, rows), before.slice(0, rows), "what lies before a pull changed");
  assert.notDeepEqual(after.slice(rows), before.slice(rows), "a pull changed nothing");
}

/** Checks that two controllers can be selected and are shown side by side. */
async function compares(tab) {
  for (const name of ["gcc", "equipoise"]) {
    await tab.click(`#controllers input[value=${name}]`);
    await settled(tab);
  }
  await tab.waitForFunction(() => document.querySelectorAll("#figures thead th").length === 2);
  const names = await compared(tab);
  assert.deepEqual(names.toSorted(), ["equipoise", "gcc"]);
}

/** Returns the names of the compared controllers, in the order in which the page shows them. */
function compared(tab) {
  return tab.$$eval("#figures thead th", (cells) => cells.map((cell) => cell.textContent));
}

/** Checks that the results of the command for each exported scenario equal the page's results exactly. */
async function saysWhatTheCommandSays(tab) {
  const results = JSON.parse(await saved(tab, "#save-results", "results.json"));
  assert.equal(results.length, 2);
  const file = join(downloads, "again.toml");
  for (const [place, name] of (await compared(tab)).entries()) {
    writeFileSync(file, await saved(tab, "#save-scenario", `scenario-${name}.toml`));
    const told = execFileSync(command, ["sim", file, "--quiet", "--json", "-"], { encoding: "utf8" });
    assert.deepEqual(results[place].runs, JSON.parse(told).runs);
  }
  await saved(tab, "#save-png", "charts.png");
}

/** Checks that the copied link shows the same run in another tab. */
async function isShared(tab, browser) {
  const figures = await text(tab, "#figures");
  await tab.click("#share");
  await tab.waitForFunction(() => location.hash.length > 1);
  const other = await browser.newPage();
  await other.goto(tab.url());
  await settled(other);
  assert.equal(await text(other, "#figures"), figures);
  await other.close();
  await tab.bringToFront();
}

/** Returns the lines of the CSV that the page exports. */
async function series(tab) {
  return (await saved(tab, "#save-csv", "series.csv")).split("\r\n");
}

/** Clicks a button, and returns the content of the file that the page saves. */
async function saved(tab, button, name) {
  const file = join(downloads, name);
  rmSync(file, { force: true });
  await tab.click(button);
  for (let tries = 0; tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    try {
      const content = readFileSync(file, "utf8");
      if (content.length > 0) return content;
    } catch {}
  }
  throw new Error(`${button} saved no ${name}`);
}
