// Tests HTML reports in Debian's Chromium: `node report.mjs COMMAND SCENARIOS FOLDER`. The program COMMAND writes a
// report of each kind. A chart must show the values of the report's JSON, even if only a part of the time is visible,
// and the page must work without scripts. Screenshots are written to FOLDER.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { inChromium, isAccessible, photographs } from "./browser.mjs";

const [command, scenarios, target] = process.argv.slice(2);
const folder = join(target, "reports");
mkdirSync(folder, { recursive: true });
const scenario = (name) => join(scenarios, `${name}.toml`);
const KINDS = {
  sim: ["sim", scenario("demo-short")],
  runs: ["sim", scenario("demo-short"), scenario("two-paths"), "--runs", "12"],
  compare: ["compare", scenario("demo-short"), "--controller", "ap,gcc,equipoise", "--runs", "5"],
  suite: ["suite", "rfc8867", "5.1/50ms-link", "--runs", "2"],
};
const file = (kind, extension) => join(folder, `${kind}.${extension}`);
/**
 * Folder for the report of `COMMAND demo`, which has simulated and live results. The command chooses the names of the
 * files.
 */
const demo = join(folder, "demo");

await inChromium(async (tab) => {
  execFileSync(command, ["demo", "--short", "--quiet", "--out", demo]);
  await looksWell(tab, "demo", join(demo, "report.html"));
  for (const [kind, words] of Object.entries(KINDS)) {
    execFileSync(command, [...words, "--quiet", "--report", file(kind, "html"), "--json", file(kind, "json")]);
    await looksWell(tab, kind, file(kind, "html"));
  }
  await tab.goto(pathToFileURL(file("sim", "html")).href);
  await saysValues(tab);
  await showsAPart(tab);
  await isReadByKeys(tab);
  await listsValues(tab);
  await standsWithoutScripts(tab);
});
console.log("the reports: all went well");

/** Checks that a report is complete and accessible on a desktop and on a phone, in light and dark colours. */
async function looksWell(tab, kind, page) {
  await tab.goto(pathToFileURL(page).href);
  await photographs(tab, folder, kind, async (width) => {
    await fits(tab, `${kind} at ${width} px`);
    await isAccessible(tab);
  });
}

/** Checks that no part of the page is cut off. */
async function fits(tab, where) {
  const cut = await tab.$$eval(".scroll, .chart, pre, figure", (boxes) =>
    boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.getAttribute("aria-label") ?? box.className),
  );
  assert.deepEqual(cut, [], `${where}: cut off`);
}

/** Returns the control intervals of the simulated session, without intervals that have no delay. */
function intervals() {
  return JSON.parse(readFileSync(file("sim", "json"), "utf8")).runs[0].flows[0].intervals.filter(({ delay_mean_s }) => delay_mean_s !== null);
}

function middle({ start_s, end_s }) {
  return (start_s + end_s) / 2;
}

/**
 * Moves the mouse to `time` in the delay chart, which shows the time from `from` to `to`. Returns the text that the
 * chart then shows.
 */
async function pointedAt(tab, time, [from, to]) {
  const { x, y, width, height } = await tab.$eval("#delay-0 .plot", (plot) => {
    plot.scrollIntoView({ block: "center" });
    const { x, y, width, height } = plot.getBoundingClientRect();
    return { x, y, width, height };
  });
  await tab.mouse.move(x + ((time - from) / (to - from)) * width, y + height / 2);
  return tab.$eval("#delay-0 .readout", (readout) => ({ text: readout.innerText, isHidden: readout.hidden }));
}

/** Checks that a text contains the time and the mean delay of an interval. */
function tells(text, interval) {
  const number = (pattern) => Number(pattern.exec(text)?.[1]);
  const [time, delay] = [number(/time \(s\): ([\d.]+)/), number(/mean of each interval: ([\d.]+)/)];
  const wanted = interval.delay_mean_s * 1e3;
  assert.ok(Math.abs(time - middle(interval)) < 1e-3, `${middle(interval)} s: ${text}`);
  assert.ok(Math.abs(delay - wanted) <= 5e-4 * wanted + 1e-3, `${wanted} ms: ${text}`);
}

async function saysValues(tab) {
  for (const interval of intervals()) {
    const { text, isHidden } = await pointedAt(tab, middle(interval), [0, 10]);
    assert.ok(!isHidden);
    tells(text, interval);
  }
}

function numbers(tab, id) {
  return tab.$$eval(`#${id} .across text`, (labels) => labels.map((label) => label.textContent));
}

/**
 * Checks that dragging the mouse shows a part of the time in all charts, and that a double click shows the whole time.
 */
async function showsAPart(tab) {
  const whole = await numbers(tab, "rate-0");
  await pointedAt(tab, 4, [0, 10]);
  await tab.mouse.down();
  await pointedAt(tab, 6, [0, 10]);
  await tab.mouse.up();
  const part = await numbers(tab, "rate-0");
  assert.notDeepEqual(part, whole);
  assert.ok(part.every((label) => Number(label) >= 3.9 && Number(label) <= 6.1), part.join());
  for (const interval of intervals().filter((interval) => middle(interval) > 4.1 && middle(interval) < 5.9)) {
    tells((await pointedAt(tab, middle(interval), [4, 6])).text, interval);
  }
  await tab.screenshot({ path: join(folder, "part.png") });
  await tab.mouse.click(...(await middleOf(tab, "#delay-0 .plot")), { count: 2 });
  assert.deepEqual(await numbers(tab, "rate-0"), whole);
}

async function middleOf(tab, selector) {
  return tab.$eval(selector, (element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  });
}

/** Checks that the arrow keys move from value to value, and that screen readers get each value. */
async function isReadByKeys(tab) {
  await tab.focus("#delay-0 .frame");
  for (const interval of intervals().slice(0, 3)) {
    await tab.keyboard.press("ArrowRight");
    tells(await tab.$eval("#delay-0 .frame", (frame) => frame.getAttribute("aria-valuetext")), interval);
  }
  await tab.keyboard.press("+");
  assert.ok(await tab.$eval("#delay-0 .tools", (tools) => [...tools.children].every((button) => !button.hidden)));
  await tab.keyboard.press("0");
}

/** Checks that the table below a chart lists all values. */
async function listsValues(tab) {
  await tab.click("#delay-0 summary");
  await tab.waitForSelector("#delay-0 .values tbody tr");
  const rows = await tab.$$eval("#delay-0 .values tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const all = intervals();
  assert.equal(rows.length, all.length);
  rows.forEach(([time, , mean], place) => tells(`time (s): ${time} mean of each interval: ${mean}`, all[place]));
  await isAccessible(tab);
}

/** Checks that a chart is a complete picture without interactive controls if scripts are off, and in print. */
async function standsWithoutScripts(tab) {
  const seen = () =>
    tab.$$eval(".plot", (plots) => plots.map((plot) => ({ paths: plot.querySelectorAll("path").length, height: plot.getBoundingClientRect().height })));
  const before = await seen();
  await tab.emulateMediaType("print");
  assert.ok(await tab.$$eval(".tools, .values", (tools) => tools.every((tool) => tool.getBoundingClientRect().height === 0)));
  await tab.screenshot({ path: join(folder, "print.png"), fullPage: true });
  await tab.emulateMediaType("screen");
  await tab.setJavaScriptEnabled(false);
  await tab.reload();
  assert.deepEqual(await seen(), before);
  assert.equal((await tab.$$(".tools")).length, 0);
  await tab.screenshot({ path: join(folder, "without-scripts.png"), fullPage: true });
}
