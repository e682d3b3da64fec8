// Adds interaction to the charts of a page: shows values, zooms into a part, and lists all values in a table.
// Without scripts and in print, the charts remain static pictures. The lines of a chart are in the units of its axes,
// so this script reads all values from the SVG.

/** A point's value is shown at positions up to this distance from the point, as a share of the visible axis. */
const NEAR = 0.01;
/** Distance by which Page Up and Page Down move, as a share of the visible part of the axis. */
const LEAP = 0.1;
/** Smallest share of an axis that can be shown by zooming in. */
const SMALLEST = 1e-3;
/** Smallest length of a drag in pixels; a shorter drag counts as a click. */
const CLICK = 5;

const digits = (value, count) => String(Number(value.toPrecision(count)));

function html(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Returns the pairs of numbers in each connected part of an SVG path. */
function parts(path) {
  const numbers = (part) => (part.match(/-?[\d.]+(?:e[-+]?\d+)?/g) ?? []).map(Number);
  const pairs = (all) => Array.from({ length: all.length >> 1 }, (_, place) => [all[2 * place], all[2 * place + 1]]);
  return path.split("M").slice(1).map((part) => pairs(numbers(part)));
}

/** Returns a layer of a chart: its points with their values, in order of position. */
function layer(element) {
  const { shape, name, color } = element.dataset;
  let points;
  if (shape === "signs") {
    points = [...element.querySelectorAll(".sign")].map((sign) => ({ x: Number(sign.dataset.at), values: [Number(sign.dataset.value)] }));
    const title = element.querySelector("title");
    if (title !== null) {
      points = points.slice(0, 1).map((point) => ({ ...point, text: title.textContent }));
      // The browser's own tooltip would cover the values that this script shows.
      title.remove();
    }
  } else if (shape === "band") {
    points = parts(element.getAttribute("d")).flatMap((part) =>
      part.slice(0, part.length / 2).map(([x, high], place) => ({ x, values: [part.at(-1 - place)[1], high] })),
    );
  } else {
    points = parts(element.getAttribute("d")).flatMap((part) => part.map(([x, y]) => ({ x, values: [y] })));
  }
  return { name, color, isStepped: shape === "steps", points: points.sort((one, other) => one.x - other.x) };
}

/** Returns at most `most` + 1 round numbers on an axis. On a logarithmic axis, returns all powers of ten. */
function ticks([min, max], areExponents, most) {
  const step = areExponents ? 1 : roundStep((max - min) / most);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const made = [];
  for (let number = Math.ceil(min / step - 1e-6); number <= Math.floor(max / step + 1e-6); number += 1) {
    const at = number * step;
    made.push({ at, label: areExponents ? digits(10 ** at, 3) : at.toFixed(decimals).replace("-", "−") });
  }
  return made;
}

/** Returns the smallest number that is 1, 2 or 5 times a power of ten and not below `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least * (1 - 1e-9));
}

class Chart {
  constructor(element) {
    this.element = element;
    this.frame = element.querySelector(".frame");
    this.plot = element.querySelector(".plot");
    const axis = (name) => element.dataset[name].split(" ").map(Number);
    this.whole = { x: axis("x"), y: axis("y") };
    this.seen = this.whole;
    this.areExponents = { x: "xExponents" in element.dataset, y: "yExponents" in element.dataset };
    this.across = element.querySelector(".across.unit").textContent;
    // Charts with the same horizontal axis always show the same part of the axis.
    this.key = `${this.across} ${element.dataset.x}`;
    this.canZoom = "zoom" in element.dataset;
    // In a chart of separate symbols, a line only guides the eye, so only the symbols have values.
    this.layers = [...this.plot.querySelectorAll(this.canZoom ? "[data-name]" : "g[data-name]")].map(layer);
    this.places = [...new Set(this.layers.flatMap(({ points }) => points.map(({ x }) => x)))].sort((one, other) => one - other);
    this.cursor = this.#draw("line", { class: "cursor", y2: "100%" });
    this.selection = this.#draw("rect", { class: "selection", height: "100%" });
    this.readout = html("div", "", { class: "readout", "aria-hidden": "true" });
    this.frame.append(this.readout);
    this.#beSlider();
    this.#listenToPointers();
    if (this.canZoom) this.#offerZoom();
    if (this.places.length > 0) this.#offerTable();
    this.leave();
  }

  #draw(name, attributes) {
    const made = document.createElementNS(this.plot.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    this.plot.append(made);
    return made;
  }

  /**
   * For the keyboard and for screen readers, a chart is a slider over the horizontal positions of its points. The
   * slider's value text lists the values of all layers at the current position.
   */
  #beSlider() {
    if (this.places.length === 0) return;
    const label = this.plot.getAttribute("aria-label");
    const [min, max] = [this.places[0], this.places.at(-1)];
    const attributes = { role: "slider", tabindex: "0", "aria-label": label, "aria-valuemin": min, "aria-valuemax": max, "aria-valuenow": min };
    for (const [key, value] of Object.entries(attributes)) this.frame.setAttribute(key, value);
    this.frame.setAttribute("aria-valuetext", "arrow keys go along it");
    this.frame.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const places = this.places.filter((x) => x >= this.seen.x[0] && x <= this.seen.x[1]);
      const leap = LEAP * (this.seen.x[1] - this.seen.x[0]);
      const keys = {
        ArrowRight: () => this.show(places.find((x) => x > (this.at ?? -Infinity)) ?? places.at(-1)),
        ArrowLeft: () => this.show(places.findLast((x) => x < (this.at ?? Infinity)) ?? places[0]),
        PageUp: () => this.show(places.find((x) => x >= (this.at ?? -Infinity) + leap) ?? places.at(-1)),
        PageDown: () => this.show(places.findLast((x) => x <= (this.at ?? Infinity) - leap) ?? places[0]),
        Home: () => this.show(places[0]),
        End: () => this.show(places.at(-1)),
        Escape: () => this.leave(),
      };
      const zooms = { "+": () => this.scale(0.5), "=": () => this.scale(0.5), "-": () => this.scale(2), 0: () => this.zoom(this.whole.x) };
      const turn = keys[event.key] ?? (this.canZoom ? zooms[event.key] : undefined);
      if (turn === undefined) return;
      event.preventDefault();
      turn();
    });
    this.frame.addEventListener("blur", () => this.leave());
  }

  /** Returns the value of the horizontal axis at the horizontal position of the pointer. */
  #under(event) {
    const { left, width } = this.plot.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - left) / width, 0), 1);
    return this.seen.x[0] + share * (this.seen.x[1] - this.seen.x[0]);
  }

  #listenToPointers() {
    const fingers = new Map();
    let from = null;
    this.frame.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") fingers.set(event.pointerId, event);
      else if (event.button === 0 && this.canZoom) from = { pixel: event.clientX, x: this.#under(event), seen: this.seen.x, isPan: event.shiftKey };
      this.point(event);
    });
    this.frame.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (fingers.size === 2 && before !== undefined && this.canZoom) this.#pinch([...fingers.values()], before, event);
      if (before !== undefined) fingers.set(event.pointerId, event);
      if (from?.isPan) {
        const by = ((from.pixel - event.clientX) / this.plot.getBoundingClientRect().width) * (from.seen[1] - from.seen[0]);
        this.zoom(from.seen.map((end) => end + by));
      } else if (from !== null) {
        this.#select(from.x, this.#under(event));
      }
      if (fingers.size < 2) this.point(event);
    });
    const end = (event) => {
      fingers.delete(event.pointerId);
      if (from !== null && !from.isPan && event.type === "pointerup" && Math.abs(event.clientX - from.pixel) > CLICK) {
        this.zoom([from.x, this.#under(event)].sort((one, other) => one - other));
      }
      from = null;
      this.#select(0, 0);
    };
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
    this.frame.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.leave());
    document.addEventListener("pointerdown", ({ target }) => this.frame.contains(target) || this.leave());
    if (!this.canZoom) return;
    this.frame.addEventListener("dblclick", () => this.zoom(this.whole.x));
    this.frame.addEventListener(
      "wheel",
      (event) => {
        // With Ctrl or Meta, the wheel zooms. The browser reports pinching on a touchpad as a wheel event with Ctrl. In
        // a zoomed chart, a wheel event that is more horizontal than vertical pans the chart. All other wheel events
        // scroll the page.
        const isSideways = this.seen !== this.whole && Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (event.ctrlKey || event.metaKey) this.scale(Math.exp(event.deltaY / 200), this.#under(event));
        else if (isSideways) this.pan(event.deltaX / this.plot.getBoundingClientRect().width);
        else return;
        event.preventDefault();
      },
      { passive: false },
    );
  }

  /** Zooms so that the values below two fingers stay below these fingers. */
  #pinch(fingers, before, event) {
    const other = fingers.find((finger) => finger !== before);
    const [was, is] = [before, event].map((one) => Math.max(Math.abs(one.clientX - other.clientX), 10));
    this.scale(was / is, this.#under(other));
  }

  #select(one, other) {
    const [left, right] = [one, other].sort((a, b) => a - b).map((x) => this.#share(x));
    this.selection.setAttribute("x", `${left * 100}%`);
    this.selection.setAttribute("width", `${(right - left) * 100}%`);
  }

  /**
   * Returns the position of a value in the visible part of the horizontal axis: 0 at the left edge, 1 at the right
   * edge.
   */
  #share(x) {
    return (x - this.seen.x[0]) / (this.seen.x[1] - this.seen.x[0]);
  }

  /** Shows the values at the position that is nearest to a pointer. */
  point(event) {
    const x = this.#under(event);
    const seen = this.places.filter((place) => place >= this.seen.x[0] && place <= this.seen.x[1]);
    if (seen.length > 0) this.show(seen.reduce((best, place) => (Math.abs(place - x) < Math.abs(best - x) ? place : best)));
  }

  /** Returns the value of each layer at a position. */
  valuesAt(x) {
    const near = NEAR * (this.seen.x[1] - this.seen.x[0]);
    return this.layers.flatMap(({ name, color, isStepped, points }) => {
      const held = isStepped && x <= points.at(-1).x ? points.findLast((point) => point.x <= x) : undefined;
      const nearest = () => points.reduce((best, point) => (Math.abs(point.x - x) < Math.abs(best.x - x) ? point : best));
      const point = held ?? (isStepped ? undefined : nearest());
      if (point === undefined || (!isStepped && Math.abs(point.x - x) > near)) return [];
      return [{ name, color, text: this.#words(point) }];
    });
  }

  #words({ values, text }) {
    const word = (value) => digits(this.areExponents.y ? 10 ** value : value, 4);
    return text ?? values.map(word).join(" to ");
  }

  /** Shows the values of all layers at a position. */
  show(x) {
    if (x === undefined) return;
    this.at = x;
    const values = this.valuesAt(x);
    const place = `${this.across}: ${digits(this.areExponents.x ? 10 ** x : x, 5)}`;
    const list = html("ul", "");
    for (const { name, color, text } of values) {
      const item = html("li", "");
      const sign = html("i", "");
      sign.style.background = color;
      item.append(sign, `${name}: `, html("b", text));
      list.append(item);
    }
    this.readout.replaceChildren(...(this.canZoom ? [html("p", place)] : []), list);
    this.readout.hidden = false;
    const share = this.#share(x);
    this.readout.className = share < 0.5 ? "readout right" : "readout left";
    this.cursor.setAttribute("x1", `${share * 100}%`);
    this.cursor.setAttribute("x2", `${share * 100}%`);
    this.cursor.style.display = "";
    this.frame.setAttribute("aria-valuenow", x);
    this.frame.setAttribute("aria-valuetext", [place, ...values.map(({ name, text }) => `${name}: ${text}`)].join("; "));
  }

  leave() {
    this.at = undefined;
    this.readout.hidden = true;
    this.cursor.style.display = "none";
  }

  #offerZoom() {
    const tools = html("span", "", { class: "tools" });
    const button = (sign, label, turn) => {
      const made = html("button", sign, { type: "button", "aria-label": label, title: label });
      made.addEventListener("click", turn);
      tools.append(made);
      return made;
    };
    const others = [
      button("◂", "Earlier part", () => this.pan(-0.5)),
      button("▸", "Later part", () => this.pan(0.5)),
      button("whole", "Show the whole", () => this.zoom(this.whole.x)),
      button("−", "Zoom out", () => this.scale(2)),
    ];
    button("+", "Zoom in", () => this.scale(0.5));
    this.others = others;
    for (const other of others) other.hidden = true;
    this.element.querySelector(".unit").append(tools);
  }

  /**
   * Shows a part of the axis that is `factor` times as long as now, and keeps the value `around` at the same position.
   */
  scale(factor, around = this.at ?? (this.seen.x[0] + this.seen.x[1]) / 2) {
    this.zoom(this.seen.x.map((end) => around + (end - around) * factor));
  }

  /** Moves the visible part of the axis by `share` times the length of this part. */
  pan(share) {
    const by = share * (this.seen.x[1] - this.seen.x[0]);
    this.zoom(this.seen.x.map((end) => end + by));
  }

  /** Shows a part of the axis in this chart and in all charts with the same horizontal axis. */
  zoom([from, to]) {
    const [min, max] = this.whole.x;
    const length = Math.min(Math.max(to - from, SMALLEST * (max - min)), max - min);
    const start = Math.min(Math.max(from, min), max - length);
    for (const chart of charts) if (chart.key === this.key && chart.canZoom) chart.look(start, start + length);
  }

  look(from, to) {
    const [min, max] = this.whole.x;
    const isWhole = to - from >= (max - min) * (1 - 1e-9);
    this.seen = isWhole ? this.whole : { x: [from, to], y: this.#heights(from, to) };
    const { x, y } = this.seen;
    const [a, d] = [1 / (x[1] - x[0]), 1 / (y[1] - y[0])];
    this.plot.querySelector(".upright").setAttribute("transform", `matrix(${a} 0 0 1 ${-x[0] * a} 0)`);
    this.plot.querySelector(".data").setAttribute("transform", `matrix(${a} 0 0 ${-d} ${-x[0] * a} ${y[1] * d})`);
    this.#label();
    this.others.forEach((button) => {
      button.hidden = isWhole;
    });
    this.leave();
  }

  /**
   * Returns the limits of the vertical axis for a part of the horizontal axis: from the lowest value of the axis to a
   * little above the highest value in the part. A logarithmic axis keeps its limits.
   */
  #heights(from, to) {
    const [foot, top] = this.whole.y;
    if (this.areExponents.y) return [foot, top];
    const inside = this.layers.flatMap(({ isStepped, points }) => {
      const before = isStepped ? points.findLast(({ x }) => x <= from) : undefined;
      const among = points.filter(({ x }) => x >= from && x <= to);
      return (before === undefined ? among : [before, ...among]).flatMap(({ values }) => values);
    });
    const levels = [...this.plot.querySelectorAll(".level")].map((level) => Number(level.dataset.at));
    const highest = Math.max(...inside, ...levels.filter((level) => level <= top));
    if (!(highest > foot)) return [foot, top];
    const step = roundStep((highest - foot) / 8);
    return [foot, foot + Math.ceil(((highest - foot) * 1.02) / step) * step];
  }

  /** Moves all labels and symbols to their positions in the visible part. */
  #label() {
    const { width, height } = this.plot.getBoundingClientRect();
    const down = (y) => height * (1 - (y - this.seen.y[0]) / (this.seen.y[1] - this.seen.y[0]));
    const place = (element, share) => {
      element.setAttribute("x", `${share * 100}%`);
      element.style.display = share >= -1e-6 && share <= 1 + 1e-6 ? "" : "none";
    };
    const [across, up] = [".across", ".up"].map((name) => this.plot.querySelector(`.ticks${name}`));
    this.ticks ??= { across: across.innerHTML, up: up.innerHTML };
    if (this.seen === this.whole) {
      [across.innerHTML, up.innerHTML] = [this.ticks.across, this.ticks.up];
    } else {
      const below = across.querySelector("text").getAttribute("y");
      const line = (attributes) => `<line class="grid" ${attributes}/>`;
      across.innerHTML = ticks(this.seen.x, this.areExponents.x, width / 70)
        .map(({ at, label }) => [this.#share(at) * 100, label])
        .map(([x, label]) => `${line(`x1="${x}%" x2="${x}%" y2="${height}"`)}<text x="${x}%" y="${below}" text-anchor="middle">${label}</text>`)
        .join("");
      up.innerHTML = ticks(this.seen.y, this.areExponents.y, height / 30)
        .map(({ at, label }) => [down(at), label])
        .map(([y, label]) => `${line(`x2="100%" y1="${y}" y2="${y}"`)}<text dx="-8" y="${y + 4}" text-anchor="end">${label}</text>`)
        .join("");
    }
    for (const sign of this.plot.querySelectorAll(".sign")) {
      place(sign, this.#share(Number(sign.dataset.at)));
      sign.setAttribute("y", down(Number(sign.dataset.value)));
    }
    for (const mark of this.plot.querySelectorAll(".mark")) {
      mark.first ??= [mark.getAttribute("x"), mark.getAttribute("text-anchor")];
      place(mark, this.#share(Number(mark.dataset.at)));
      mark.setAttribute("text-anchor", "middle");
      if (this.seen === this.whole) ["x", "text-anchor"].forEach((name, index) => mark.setAttribute(name, mark.first[index]));
    }
    for (const level of this.plot.querySelectorAll(".level")) {
      level.first ??= level.getAttribute("y");
      level.setAttribute("y", this.seen === this.whole ? level.first : down(Number(level.dataset.at)) - 4);
    }
  }

  /** Adds a closed section for a table of all values in the visible part of the chart. The table is created when the
   * reader opens the section. */
  #offerTable() {
    const details = html("details", "", { class: "values" });
    details.append(html("summary", "Values"));
    details.addEventListener("toggle", () => {
      details.querySelector("div")?.remove();
      if (!details.open) return;
      const box = html("div", "", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Values of the ${this.plot.getAttribute("aria-label")}` });
      box.append(this.#table());
      details.append(box);
    });
    this.element.append(details);
  }

  #table() {
    const table = html("table", "");
    const heads = table.createTHead().insertRow();
    const names = this.canZoom ? [this.across, ...this.layers.map(({ name }) => name)] : ["what", "values"];
    heads.append(...names.map((name) => html("th", name, { scope: "col" })));
    const body = table.createTBody();
    const row = (first, cells) => body.insertRow().append(html("th", first, { scope: "row" }), ...cells.map((cell) => html("td", cell)));
    if (!this.canZoom) {
      for (const { name, points } of this.layers) for (const point of points) row(name, [this.#words(point)]);
      return table;
    }
    const found = this.layers.map(({ points }) => new Map(points.map((point) => [point.x, this.#words(point)])));
    for (const x of this.places.filter((x) => x >= this.seen.x[0] && x <= this.seen.x[1])) {
      row(digits(this.areExponents.x ? 10 ** x : x, 6), found.map((values) => values.get(x) ?? "–"));
    }
    return table;
  }
}

const charts = [...document.querySelectorAll(".chart")].map((element) => new Chart(element));
