// Shows the current state of each controller, and the key results of the whole run.

import { beliefs, lastAt } from "./charts.js";

const cell = (name, text) => Object.assign(document.createElement(name), { textContent: text });

const flowOf = (lane, flow) => lane.report.runs[0].flows.find(({ name }) => name === flow);
const scaled = (value, scale, digits, unit) =>
  value === null || value === undefined ? "none" : `${(value * scale).toFixed(digits)} ${unit}`;
const mbps = (value) => scaled(value, 1e-6, 2, "Mbit/s");
const ms = (value) => scaled(value, 1e3, 0, "ms");
const percent = (value) => scaled(value, 100, 1, "%");

/**
 * Shows a line of text for each lane (the run of one controller) with its state at the time `now`: arrival rate,
 * queueing, and the reason for the rate.
 */
export function lanes(holder, played, now) {
  if (holder.children.length !== played.lanes.length) {
    holder.replaceChildren(
      ...played.lanes.map((_, place) => {
        const line = document.createElement("p");
        const name = document.createElement("strong");
        name.className = `lane lane-${place + 1}`;
        line.append(name, " ", document.createElement("span"));
        return line;
      }),
    );
  }
  played.lanes.forEach((lane, place) => {
    const [name, text] = holder.children[place].children;
    name.textContent = lane.controller;
    text.textContent = present(lane, played.flow, now);
  });
}

function present(lane, flow, now) {
  const { at_s, received_bps, wait_max_s } = lane.columns;
  const at = lastAt(at_s, now);
  if (at < 0) return "not started yet";
  const words = [`${mbps(received_bps[at])} arrive`, `packets wait up to ${ms(wait_max_s[at])}`];
  const believed = beliefs(lane, flow);
  const belief = believed[lastAt(believed.map((it) => it.at_s), now)];
  if (belief) {
    words.push(`mode ${belief.mode}, rate ${mbps(belief.rate_bps)}${belief.reason ? ` because of ${belief.reason}` : ""}`);
  }
  return words.join("; ");
}

/** The rows of the table. Each has a title, and a function that returns the row's text for a lane (one controller). */
const FIGURES = [
  ["Arrived", (lane, flow) => mbps(flowOf(lane, flow).delivered_rate_bps)],
  ["Of the capacity", (lane) => percent(lane.report.runs[0].media?.utilisation)],
  ["Wait in queues, p95", (lane, flow) => ms(flowOf(lane, flow).queueing?.p95_s)],
  ["Frame delay, p50", (lane, flow) => ms(flowOf(lane, flow).video?.delay.p50_s)],
  ["Frame delay, p95", (lane, flow) => ms(flowOf(lane, flow).video?.delay.p95_s)],
  ["Frozen", (lane, flow) => scaled(flowOf(lane, flow).video?.frozen_s, 1, 1, "s")],
  ["Packets lost", (lane, flow) => String(flowOf(lane, flow).packets_lost)],
];

export function figures(table, played) {
  const [head, body] = [table.tHead, table.tBodies[0]];
  // A row is left out if no lane has a value for it.
  const rows = FIGURES.map(([title, of]) => [title, played.lanes.map((lane) => of(lane, played.flow))]);
  const told = rows.filter(([, values]) => values.some((value) => value !== "none"));
  const top = document.createElement("tr");
  top.append(cell("td", ""), ...played.lanes.map(({ controller }) => Object.assign(cell("th", controller), { scope: "col" })));
  head.replaceChildren(top);
  body.replaceChildren(
    ...told.map(([title, values]) => {
      const row = document.createElement("tr");
      row.append(Object.assign(cell("th", title), { scope: "row" }), ...values.map((value) => cell("td", value)));
      return row;
    }),
  );
}
