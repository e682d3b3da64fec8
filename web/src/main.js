// The main script of the playground: the setup of the run, the run's current time, and the controls of the page.

import { read, written } from "./address.js";
import { Charts, lastAt } from "./charts.js";
import { Engine } from "./engine.js";
import { csv, save } from "./files.js";
import { figures, lanes } from "./tables.js";
import { Pulls } from "./pulls.js";

const by = (id) => document.getElementById(id);
const MOST_CONTROLLERS = 3;
/**
 * Minimum duration of a run of a built-in scenario, in seconds. A shorter run would leave no time to change the link.
 */
const LEAST_S = 60;

const engine = new Engine();
const charts = new Charts();

/**
 * The setup of the run. `scenario` is the text of the scenario file; `pulls` are the changes that the user made to the
 * link.
 */
const setup = { scenario: "", seed: 1, duration_s: null, controllers: [], pulls: [] };
/** The result of the last complete run; null before the first run is complete. */
let played = null;
let now = 0;
let playing = false;
/**
 * The number of the latest request while a run is calculated, otherwise 0. During the calculation the clock of the page
 * stops, because the results are not known yet.
 */
let calculating = 0;

const pulls = new Pulls({
  current: () => played && { played, now, pulls: setup.pulls },
  pull: (quantity, value) => {
    // The new change replaces all changes of the same quantity at later times.
    const others = setup.pulls.filter((pull) => pull.quantity !== quantity || pull.at_s < now);
    setup.pulls = [...others, { at_s: Number(now.toFixed(3)), quantity, value }];
    run();
  },
});

/** Calculates the whole run, and shows its results up to the current time. */
async function run() {
  calculating += 1;
  const mine = calculating;
  by("problem").hidden = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await engine.call("play", setup);
    if (mine !== calculating) return;
    played = answer;
    show();
  } catch (problem) {
    if (mine !== calculating) return;
    by("problem").textContent = problem.message;
    by("problem").hidden = false;
    setPlaying(false);
  }
  calculating = 0;
  document.body.removeAttribute("aria-busy");
}

function show() {
  by("moment").max = String(played.duration_s);
  by("duration").value = String(played.duration_s);
  charts.show(played);
  figures(by("figures"), played);
  draw();
}

function draw() {
  if (played === null) return;
  charts.draw(now);
  lanes(by("lanes"), played, now);
  pulls.follow();
  by("clock").textContent = `${now.toFixed(1)} s`;
  by("moment").value = String(now);
}

let before = 0;
function tick(at) {
  // A page in the background gets no animation frames. Limit the step, so that the run continues at the time at which
  // it stopped.
  const passed = Math.min((at - before) / 1000, 0.25);
  before = at;
  if (playing && played !== null && calculating === 0) {
    now = Math.min(now + passed * Number(by("speed").value), played.duration_s);
    if (now >= played.duration_s) setPlaying(false);
    draw();
  }
  requestAnimationFrame(tick);
}

function setPlaying(on) {
  playing = on;
  by("play").textContent = on ? "Pause" : "Play";
}

function begin() {
  now = 0;
  run();
}

function choose(preset) {
  setup.scenario = preset.text;
  setup.pulls = [];
  setup.controllers = [];
  by("text").value = preset.text;
  by("scenario").title = preset.description;
  for (const box of by("controllers").querySelectorAll("input")) box.checked = false;
  setup.duration_s = Math.max(LEAST_S, preset.duration_s);
  begin();
}

function fillIn(presets, offers) {
  for (const [place, { name }] of presets.entries()) by("scenario").add(new Option(name, String(place)));
  by("scenario").add(new Option("own text", "own", false, false));
  for (const { name, summary } of offers) {
    const label = document.createElement("label");
    label.title = summary;
    const box = Object.assign(document.createElement("input"), { type: "checkbox", value: name });
    label.append(box, ` ${name}`);
    by("controllers").append(label);
  }
  by("scenario").addEventListener("change", ({ target }) => {
    if (target.value === "own") by("own").open = true;
    else choose(presets[Number(target.value)]);
  });
}

function chooseControllers() {
  const boxes = [...by("controllers").querySelectorAll("input")];
  const chosen = boxes.filter((box) => box.checked);
  for (const box of boxes) box.disabled = !box.checked && chosen.length >= MOST_CONTROLLERS;
  setup.controllers = chosen.map((box) => box.value);
}

function listen() {
  by("controllers").addEventListener("change", () => {
    chooseControllers();
    run();
  });
  by("seed").addEventListener("change", ({ target }) => {
    if (!target.checkValidity() || target.value === "") return;
    setup.seed = Number(target.value);
    run();
  });
  by("duration").addEventListener("change", ({ target }) => {
    if (!target.checkValidity() || target.value === "") return;
    setup.duration_s = Number(target.value);
    now = Math.min(now, setup.duration_s);
    run();
  });
  by("use").addEventListener("click", () => {
    by("scenario").value = "own";
    Object.assign(setup, { scenario: by("text").value, duration_s: null, pulls: [] });
    begin();
  });
  by("play").addEventListener("click", () => {
    if (!playing && played !== null && now >= played.duration_s) now = 0;
    setPlaying(!playing);
  });
  by("restart").addEventListener("click", () => {
    now = 0;
    draw();
  });
  by("moment").addEventListener("input", ({ target }) => {
    now = Number(target.value);
    draw();
  });
  by("unpull").addEventListener("click", () => {
    setup.pulls = [];
    run();
  });
  document.addEventListener("keydown", (event) => {
    const isInControl = event.target.closest("input, select, textarea, button, summary, a");
    if (event.key !== " " || isInControl || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    by("play").click();
  });
  window.addEventListener("resize", () => played && show());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => played && show());
}

function listenToExports() {
  by("share").addEventListener("click", async () => {
    location.hash = written(setup);
    const told = by("told");
    try {
      await navigator.clipboard.writeText(location.href);
      told.textContent = "The link is in the clipboard.";
    } catch {
      told.textContent = "The link is in the address bar.";
    }
  });
  by("save-scenario").addEventListener("click", () => {
    const several = played.lanes.length > 1;
    for (const { controller, scenario } of played.lanes) {
      save(several ? `scenario-${controller}.toml` : "scenario.toml", "text/plain", scenario);
    }
  });
  by("save-results").addEventListener("click", () => {
    const reports = played.lanes.map((lane) => lane.report);
    const results = reports.length === 1 ? reports[0] : reports;
    save("results.json", "application/json", `${JSON.stringify(results, null, 2)}\n`);
  });
  by("save-csv").addEventListener("click", () => save("series.csv", "text/csv", csv(played)));
  by("save-png").addEventListener("click", () => charts.picture().toBlob((blob) => save("charts.png", "image/png", blob)));
}

async function start() {
  const [presets, offers] = await Promise.all([engine.call("scenarios"), engine.call("controllers")]);
  fillIn(presets, offers);
  listen();
  listenToExports();
  const shared = read(location.hash);
  if (shared === null) {
    choose(presets[0]);
  } else {
    Object.assign(setup, shared);
    const place = presets.findIndex(({ text }) => text === setup.scenario);
    by("scenario").value = place < 0 ? "own" : String(place);
    by("text").value = setup.scenario;
    for (const box of by("controllers").querySelectorAll("input")) box.checked = setup.controllers.includes(box.value);
    chooseControllers();
    begin();
  }
  by("seed").value = String(setup.seed);
  requestAnimationFrame(tick);
}

start();
