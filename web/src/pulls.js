// The sliders with which the user changes the link by hand. Such a change is called a pull. A slider shows the present
// value of the run, except while the user moves the slider.

import { lastAt } from "./charts.js";

const by = (id) => document.getElementById(id);

/** Scale of a slider for a rate: from 100 kbit/s to 50 Mbit/s, logarithmic. */
const RATE = {
  value: (place) => 1e5 * 500 ** (place / 1000),
  place: (bps) => (1000 * Math.log(Math.max(bps, 1e5) / 1e5)) / Math.log(500),
  text: (bps) => (bps >= 1e6 ? `${(bps / 1e6).toFixed(2)} Mbit/s` : `${(bps / 1e3).toFixed(0)} kbit/s`),
};
/** Scale of the slider for cross traffic: as for a rate, but the lowest position means no traffic. */
const LOAD = {
  value: (place) => (place === 0 ? 0 : RATE.value(place)),
  place: (bps) => (bps === 0 ? 0 : Math.max(RATE.place(bps), 1)),
  text: (bps) => (bps === 0 ? "none" : RATE.text(bps)),
};
const DELAY = {
  value: (place) => place / 1000,
  place: (seconds) => seconds * 1000,
  text: (seconds) => `${(seconds * 1000).toFixed(0)} ms`,
};
/** Scale of the slider for loss: in steps of 0.1 %, up to 20 %, because media cannot use a path with more loss. */
const LOSS = {
  value: (place) => place / 1000,
  place: (share) => share * 1000,
  text: (share) => (share === 0 ? "none" : `${(share * 100).toFixed(1)} %`),
};
const QUANTITIES = { capacity: RATE, delay: DELAY, loss: LOSS, cross: LOAD };
/** Time between the last move of a slider and the calculation of the new run, in ms. */
const PATIENCE_MS = 60;

export class Pulls {
  #current;
  #held = new Set();

  /**
   * A pull is a change that is made by hand with a slider. `current` returns the run's result, its current time and its
   * pulls. `pull` is called with the quantity and the value of a new pull.
   */
  constructor({ current, pull }) {
    this.#current = current;
    for (const [quantity, scale] of Object.entries(QUANTITIES)) {
      const slider = by(quantity);
      let timer = null;
      slider.addEventListener("input", () => {
        this.#held.add(quantity);
        const value = round(scale.value(Number(slider.value)));
        this.#say(quantity, value);
        clearTimeout(timer);
        timer = setTimeout(() => pull(quantity, value), PATIENCE_MS);
      });
      slider.addEventListener("change", () => this.#held.delete(quantity));
    }
  }

  /** Sets the sliders to the values of the run at its current time. */
  follow() {
    const { played, now, pulls } = this.#current();
    const others = pulls.filter(({ quantity }) => quantity === "cross").map(({ at_s, value }) => [at_s, value]);
    const schedules = { capacity: played.capacity, delay: played.delay, loss: played.loss, cross: [[0, 0], ...others] };
    for (const [quantity, schedule] of Object.entries(schedules)) {
      by(quantity).disabled = schedule.length === 0;
      if (this.#held.has(quantity) || schedule.length === 0) continue;
      const moments = schedule.map(([at]) => at);
      const [, value] = schedule[Math.max(lastAt(moments, now), 0)];
      by(quantity).value = String(QUANTITIES[quantity].place(value));
      this.#say(quantity, value);
    }
  }

  #say(quantity, value) {
    const text = QUANTITIES[quantity].text(value);
    by(`${quantity}-value`).textContent = text;
    by(quantity).setAttribute("aria-valuetext", text);
  }
}

/** Rounds a value to three significant digits, which is the resolution of a slider. */
function round(value) {
  return Number(value.toPrecision(3));
}
