// Receives the events of a run and draws them. Text from a peer is always inserted as plain text, never as HTML.
"use strict";

/** Length of the time that the charts show, in seconds, and maximum number of points that are kept for a series. */
const WINDOW_S = 120;
const MOST_POINTS = 2000;
/** Time without a measurement, in seconds, after which a line of a chart is interrupted. */
const FAR_S = 5;
/** Number of colours for series, and maximum number of ended series that are still drawn. */
const LANES = 6;
const MOST_ENDED = 16;
/** Time in ms after which a page that the server refused connects again. */
const RETRY_MS = 3000;
/** Maximum number of lines in the log of events. */
const MOST_LOGGED = 30;

const run = { start: null, at_s: 0, series: new Map(), sums: null, log: [], isOver: false };
const open = () => [...run.series.values()].filter((series) => !series.isOver);
const element = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const number = (value, scale, digits) => (value === null || value === undefined ? "–" : (value * scale).toFixed(digits));

function lane() {
  const taken = new Set(open().map((series) => series.lane));
  for (let place = 1; place <= LANES; place += 1) if (!taken.has(place)) return place;
  return 0;
}

function log(at_s, words) {
  run.log.push({ at_s, words });
  // A page that is opened late receives the events of ended series first, so the log must be sorted by time.
  run.log.sort((one, other) => other.at_s - one.at_s);
  run.log.length = Math.min(run.log.length, MOST_LOGGED);
}

/** Returns the share of lost packets. A sender and a receiver count lost packets differently. */
function lostShare(told, direction) {
  if (told.fraction_lost !== undefined) return told.fraction_lost;
  if (told.packets_lost === undefined || told.packets_lost === null) return null;
  const lost = told.packets_lost + (told.packets_dropped ?? 0);
  const all = direction === "sent" ? told.packets : told.packets + lost;
  return all > 0 ? lost / all : null;
}

const take = {
  start(told) {
    // Another run started at this address, so the data of the old run is discarded.
    Object.assign(run, { start: told, at_s: 0, series: new Map(), sums: null, log: [] });
  },
  open(told) {
    run.series.set(told.series, { ...told, lane: lane(), points: [], last: null, stoppedBy: null, isOver: false });
    log(told.at_s, `${told.name} (${told.direction}) begins`);
  },
  interval(told) {
    const series = run.series.get(told.series);
    if (!series) return;
    run.at_s = Math.max(run.at_s, told.at_s);
    series.last = {
      at_s: told.at_s,
      rate: told.rate_bps,
      allowed: told.target_rate_bps ?? null,
      delay: told.delay_mean_s ?? null,
      p95: told.delay_p95_s ?? null,
      jitter: told.jitter_s ?? null,
      lost: lostShare(told, series.direction),
      queue: told.queue_mean_packets ?? null,
      by: told.decided_by ?? told.reason ?? null,
    };
    series.points.push(series.last);
    if (series.points.length > MOST_POINTS) series.points.splice(0, MOST_POINTS / 2);
  },
  breaker(told) {
    const series = run.series.get(told.series);
    if (!series) return;
    series.stoppedBy = told.breaker;
    log(told.at_s, told.breaker ? `${series.name} is stopped by the circuit breaker ${told.breaker}` : `${series.name} goes on`);
  },
  end(told) {
    const series = run.series.get(told.series);
    if (!series) return;
    series.isOver = true;
    const ended = [...run.series.values()].filter(({ isOver }) => isOver);
    for (const oldest of ended.slice(0, -MOST_ENDED)) run.series.delete(oldest.series);
    log(told.at_s, `${series.name}: ${told.why}`);
  },
  sums(told) {
    run.sums = told;
    run.at_s = Math.max(run.at_s, told.at_s);
  },
  over(told) {
    run.at_s = Math.max(run.at_s, told.at_s);
    run.isOver = true;
    log(told.at_s, "the run is over");
  },
};

/** Draws one line per series over time, with the newest value at the right. */
function draw(id, of, scale, dashed) {
  const canvas = element(id);
  const all = [...run.series.values()];
  const seen = (key) => all.some((series) => series.points.some((point) => point[key] !== null));
  if (id === "chart-queue") canvas.closest("figure").hidden = !seen(of);
  if (id === "chart-delay") canvas.closest("figure").hidden = !seen(of) && seen("queue");
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width === 0) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  const [left, right, top, bottom] = [46, width - 8, 8, height - 22];
  const until = Math.max(run.at_s, 10);
  const from = Math.max(0, until - WINDOW_S);
  const drawn = all.map((series) => ({ series, points: series.points.filter((point) => point.at_s >= from) }));
  let most = 0;
  for (const { points } of drawn)
    for (const point of points)
      for (const key of [of, dashed]) if (key && point[key] !== null) most = Math.max(most, point[key] * scale);
  // The axis includes the dashed line of the allowed rate, which may be far above the sent rate.
  const step = nice((most || 1) / 4);
  const end = Math.max(step, Math.ceil((most || 1) / step) * step);
  const x = (at) => left + ((at - from) / (until - from)) * (right - left);
  const y = (value) => bottom - (value / end) * (bottom - top);
  pen.strokeStyle = color("--grid");
  pen.fillStyle = color("--soft");
  pen.lineWidth = 1;
  pen.textAlign = "right";
  for (let value = 0; value <= end * 1.001; value += step) {
    pen.beginPath();
    pen.moveTo(left, y(value));
    pen.lineTo(right, y(value));
    pen.stroke();
    pen.fillText(String(Number(value.toPrecision(3))), left - 6, y(value) + 4);
  }
  pen.textAlign = "center";
  const time = nice((until - from) / 5);
  for (let at = Math.ceil(from / time) * time; at <= until; at += time) pen.fillText(`${Number(at.toPrecision(6))} s`, Math.min(x(at), right - 14), height - 6);
  for (const { series, points } of drawn) {
    pen.strokeStyle = color(series.lane ? `--lane-${series.lane}` : "--soft");
    for (const key of [of, dashed]) {
      if (!key) continue;
      pen.lineWidth = key === of ? 1.8 : 1.2;
      pen.setLineDash(key === of ? [] : [4, 3]);
      pen.beginPath();
      // Points without a value are skipped, because reports may arrive less often than once per interval.
      let last = -Infinity;
      for (const point of points.filter((point) => point[key] !== null)) {
        if (point.at_s - last <= FAR_S) pen.lineTo(x(point.at_s), y(point[key] * scale));
        else pen.moveTo(x(point.at_s), y(point[key] * scale));
        last = point.at_s;
      }
      pen.stroke();
    }
    pen.setLineDash([]);
  }
  const now = all.filter((series) => series.last).map((series) => `${series.name} ${number(series.last[of], scale, 2)}`);
  canvas.setAttribute("aria-label", `${canvas.previousElementSibling.textContent}. Now: ${now.join(", ")}`);
}

/** Returns 1, 2, 5 or 10 times a power of ten: the smallest such number that is at least `value`. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((factor) => factor * power >= value) * power;
}

function cell(row, tag, text, isText) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (isText) made.className = "text";
  row.append(made);
  return made;
}

function list() {
  // During the run, the table contains only the series that have not ended. After the run, it contains all series.
  const shown = run.isOver ? [...run.series.values()] : open();
  const rows = shown.map((series) => {
    const row = document.createElement("tr");
    const head = cell(row, "th", "");
    head.scope = "row";
    const swatch = document.createElement("span");
    swatch.className = series.lane ? `swatch lane-${series.lane}` : "swatch";
    head.append(swatch, series.name);
    const last = series.last ?? {};
    cell(row, "td", series.direction);
    cell(row, "td", number(last.rate, 1e-6, 2));
    cell(row, "td", number(last.allowed, 1e-6, 2));
    cell(row, "td", number(last.delay, 1e3, 2));
    cell(row, "td", number(last.p95, 1e3, 2));
    cell(row, "td", number(last.jitter, 1e3, 2));
    cell(row, "td", number(last.lost, 100, 1));
    cell(row, "td", series.stoppedBy ? `stopped: ${series.stoppedBy}` : (last.by ?? "–"), true);
    if (series.stoppedBy) row.className = "stopped";
    return row;
  });
  element("each").replaceChildren(...rows);
}

function sums() {
  const parts = ["sent", "received", "carried"].flatMap((way) => {
    const sum = run.sums?.[way];
    return sum && sum.opened > 0 ? [`${way}: ${sum.open} of ${sum.opened}, ${number(sum.rate_bps, 1e-6, 2)} Mbit/s, ${sum.lost} packets lost`] : [];
  });
  element("sums").textContent = parts.join(" · ");
  const more = ["sent", "received", "carried"].reduce((all, way) => all + (run.sums?.[way].open ?? 0), 0) - open().length;
  element("more").hidden = more <= 0 || run.isOver;
  element("more").textContent = `${more} more go on; they are in the sums above.`;
}

let isDue = false;

/** Schedules one redraw, even if several events have arrived since the last redraw. */
function show() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    if (run.start) {
      element("title").textContent = `equipoise ${run.start.command}`;
      document.title = `equipoise ${run.start.command}, live`;
      element("clock").textContent = `${run.start.title} · ${run.at_s.toFixed(0)} s · Equipoise ${run.start.version}`;
    }
    sums();
    draw("chart-rate", "rate", 1e-6, "allowed");
    draw("chart-delay", "delay", 1e3, "p95");
    draw("chart-loss", "lost", 100);
    draw("chart-queue", "queue", 1);
    list();
    const line = ({ at_s, words }) => Object.assign(document.createElement("li"), { textContent: `${at_s.toFixed(1)} s: ${words}` });
    element("log").replaceChildren(...run.log.map(line));
  });
}

function state(words, isLost) {
  element("state").textContent = words;
  element("state").className = isLost ? "lost" : "";
}

function follow() {
  const events = new EventSource("events");
  events.onopen = () => state("live", false);
  events.onerror = () => {
    if (run.isOver) {
      events.close();
      return;
    }
    state("the connection is lost; trying again", true);
    // A browser does not retry after an error status, such as 503 if too many pages are open.
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, RETRY_MS);
  };
  events.onmessage = ({ data }) => {
    const told = JSON.parse(data);
    take[told.event]?.(told);
    if (run.isOver) {
      events.close();
      state("the run is over", false);
    }
    show();
  };
}

follow();
addEventListener("resize", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
