// Four charts of the run up to its current time, with a common time axis.

import uPlot from "uplot";

const LANES = ["--lane-1", "--lane-2", "--lane-3"];
/** Length of the visible part of the time axis, in seconds. */
const WINDOW_S = 60;
const PIXELS = { height: 190, leftAxis: 52 };

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Charts {
  #plots = [];
  #played = null;

  /** Creates the charts of the result `played`. Called for a new result, and if the page's width or colours change. */
  show(played) {
    this.#played = played;
    for (const plot of this.#plots) plot.destroy();
    const lanes = played.lanes.map((lane, place) => ({ ...lane, color: color(LANES[place]) }));
    const ofLanes = (column, scale) =>
      lanes.map((lane) => ({
        label: lane.controller,
        stroke: lane.color,
        width: 1.5,
        at: lane.columns.at_s,
        values: lane.columns[column].map((value) => (value === null ? null : value * scale)),
      }));
    const believing = lanes.filter((lane) => beliefs(lane, played.flow).length > 0);
    const ofBeliefs = believing.flatMap((lane) =>
      [["capacity_bps", "capacity", []], ["available_bps", "free", [4, 3]]].map(([key, word, dash]) => ({
        label: `${lane.controller}: ${word}`,
        stroke: lane.color,
        width: 1.5,
        dash,
        at: beliefs(lane, played.flow).map((belief) => belief.at_s),
        values: beliefs(lane, played.flow).map((belief) => (belief[key] === null ? null : belief[key] / 1e6)),
        isStepped: true,
      })),
    );
    const capacity = {
      label: "capacity",
      stroke: color("--capacity"),
      width: 2,
      at: played.capacity.map(([at]) => at),
      values: played.capacity.map(([, bps]) => bps / 1e6),
      isStepped: true,
    };
    const link = played.capacity.length > 0 ? [capacity] : [];
    this.#plots = [
      this.#plot("chart-rate", [...link, ...ofLanes("received_bps", 1e-6)]),
      this.#plot("chart-wait", ofLanes("wait_max_s", 1e3)),
      this.#plot("chart-frame", ofLanes("frame_delay_s", 1e3)),
      this.#plot("chart-belief", [...link, ...ofBeliefs]),
    ];
  }

  #plot(id, series) {
    const holder = document.getElementById(id);
    holder.replaceChildren();
    // Hide the chart of estimates if no control law of the run has estimates, because the chart would be empty.
    holder.closest("figure").hidden = id === "chart-belief" && series.every(({ label }) => label === "capacity");
    const axis = { stroke: color("--ink"), grid: { stroke: color("--grid"), width: 1 }, ticks: { show: false } };
    const options = {
      width: Math.max(holder.clientWidth, 240),
      height: PIXELS.height,
      cursor: { sync: { key: "time" }, drag: { x: false, y: false } },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 0.01)] } },
      axes: [{ ...axis, values: (_, all) => all.map((at) => `${at} s`) }, { ...axis, size: PIXELS.leftAxis }],
      series: [
        { label: "time", value: (_, at) => (at === null ? "" : `${at.toFixed(1)} s`) },
        ...series.map(({ label, stroke, width, dash, isStepped }) => ({
          label,
          stroke,
          width,
          dash,
          spanGaps: !isStepped,
          points: { show: false },
          paths: isStepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
          value: (_, value) => (value === null ? "" : value.toFixed(2)),
        })),
      ],
    };
    const plot = new uPlot(options, [[0], ...series.map(() => [null])], holder);
    plot.of = series;
    return plot;
  }

  /** Draws the run up to the time `now`. Later values are not shown. */
  draw(now) {
    const from = Math.max(0, now - WINDOW_S);
    for (const plot of this.#plots) {
      const tables = plot.of.map((series) => seen(series, from, now));
      plot.setData(tables.length > 0 ? uPlot.join(tables) : [[from]], false);
      plot.setScale("x", { min: from, max: Math.max(now, from + Math.min(WINDOW_S, this.#played.duration_s)) });
    }
  }

  /** Returns a canvas with all charts, one below the other. */
  picture() {
    const scale = window.devicePixelRatio;
    const canvases = this.#plots.map((plot) => plot.ctx.canvas);
    const captions = this.#plots.map((plot) => plot.root.closest("figure").querySelector("figcaption").textContent);
    const line = 24 * scale;
    const whole = document.createElement("canvas");
    whole.width = Math.max(...canvases.map((canvas) => canvas.width));
    whole.height = canvases.reduce((sum, canvas) => sum + canvas.height + line, 0);
    const drawing = whole.getContext("2d");
    drawing.fillStyle = color("--paper");
    drawing.fillRect(0, 0, whole.width, whole.height);
    drawing.fillStyle = color("--ink");
    drawing.font = `${14 * scale}px system-ui, sans-serif`;
    let top = 0;
    canvases.forEach((canvas, place) => {
      drawing.fillText(captions[place], 8 * scale, top + 16 * scale);
      drawing.drawImage(canvas, 0, top + line);
      top += canvas.height + line;
    });
    return whole;
  }
}

/**
 * Returns the part of a series between the times `from` and `now`; for a stepped series, also the values at these two
 * times.
 */
function seen({ at, values, isStepped }, from, now) {
  const first = after(at, from);
  const end = after(at, now);
  const [seenAt, seenValues] = [at.slice(first, end), values.slice(first, end)];
  if (isStepped) {
    if (first > 0) {
      seenAt.unshift(from);
      seenValues.unshift(values[first - 1]);
    }
    if (seenAt.length > 0 && seenAt.at(-1) < now) {
      seenAt.push(now);
      seenValues.push(seenValues.at(-1));
    }
  }
  return [seenAt, seenValues];
}

/** Returns the index of the first of the sorted times `moments` that is after `time`. */
function after(moments, time) {
  let [low, high] = [0, moments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the estimates that a lane's control law made over time, for the flow named `flow`. */
export function beliefs(lane, flow) {
  return lane.report.runs[0].flows.find(({ name }) => name === flow)?.beliefs ?? [];
}

/** Returns the index of the last of the sorted times `moments` that is not after `now`; -1 if there is none. */
export function lastAt(moments, now) {
  return after(moments, now) - 1;
}
