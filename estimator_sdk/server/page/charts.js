// Charts by uPlot, in the colours of the theme, with their numbers in a legend that follows the pointer.

import { plain } from "./ansi.js";
import { library } from "./api.js";
import { clock, h } from "./dom.js";

let uPlot = null;
const loading = library("./vendor/uPlot.esm.js").then(
  (module) => (uPlot = module.default),
  () => console.warn("uPlot is missing: there are no charts; run scripts/setup"),
);
const COLOURS = ["#3b78d8", "#d9863d", "#2e9e63", "#a05cc0", "#c94f7c", "#2fa3b5", "#9a8b25", "#7d8794"];
const HEIGHT = 200;

export const ready = () => loading.then(() => uPlot !== null);

export const colour = (number) => COLOURS[number % COLOURS.length];

export function shown(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

// One chart with a title. `lines` has for each a label, and of a band the numbers of its edges.
export class Chart {
  constructor(place, title, isTime, format = shown, isFromZero = false) {
    this.caption = h("figcaption", {}, plain(title));
    this.box = h("div", { role: "img", "aria-label": title });
    this.figure = h("figure", { class: "chart" }, this.caption, this.box);
    place.append(this.figure);
    this.isTime = isTime;
    this.format = format;
    this.isFromZero = isFromZero;
    this.across = isTime ? "time" : "step";
    this.watch = new ResizeObserver(() => this.plot?.setSize({ width: this.width(), height: HEIGHT }));
    this.watch.observe(this.figure);
  }

  say(words) {
    this.caption.replaceChildren(...plain(words));
  }

  width() {
    return Math.max(160, this.figure.clientWidth - 24);
  }

  set(data, lines, bands = []) {
    const kind = JSON.stringify([lines.map((line) => line.label), bands]);
    this.last = [data, lines, bands];
    if (this.plot && kind === this.kind) {
      this.plot.setData(data);
      return;
    }
    this.kind = kind;
    this.draw();
  }

  draw() {
    this.plot?.destroy();
    if (!this.last || uPlot === null) return;
    const [data, lines, bands] = this.last;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--soft");
    const grid = { stroke: style.getPropertyValue("--line"), width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
    this.plot = new uPlot(
      {
        width: this.width(),
        height: HEIGHT,
        scales: { x: { time: this.isTime }, y: this.isFromZero ? { range: (_, __, most) => [0, most > 0 ? 1.05 * most : 1] } : {} },
        axes: [this.isTime ? { ...axis, space: 90, values: (_, times) => times.map((time) => clock(time).slice(0, 8)) } : axis, { ...axis, size: 62, values: (_, values) => values.map(this.format) }],
        series: [{ label: this.across, value: (_, at) => (at === null || at === undefined ? "–" : this.isTime ? clock(at).slice(0, 8) : shown(at)) }, ...lines.map((line) => this.line(line))],
        bands,
        legend: { show: lines.length <= 8 },
        cursor: { drag: { x: true, y: false } },
      },
      data,
      this.box,
    );
  }

  line({ label, stroke, width, dash }) {
    return { label, stroke, width: width ?? 1.5, dash, points: { show: false }, value: (_, value) => this.format(value) };
  }

  close() {
    this.watch.disconnect();
    this.plot?.destroy();
    this.figure.remove();
  }
}

// Several curves over the same places: where one has no value there is a gap.
export function aligned(xs, curves) {
  const places = [...new Set(xs.flat())].sort((a, b) => a - b);
  const numbers = new Map(places.map((x, number) => [x, number]));
  const columns = curves.map((values, number) => {
    const column = new Array(places.length).fill(undefined);
    values.forEach((value, at) => (column[numbers.get(xs[number][at])] = value));
    return column;
  });
  return [places, ...columns];
}
