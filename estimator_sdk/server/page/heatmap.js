// Ranks by time: each row a rank, dark where the value is high, so that the one that differs is seen at once.

import { clock, h } from "./dom.js";

const ROW = 14; // pixels of a rank, fewer where there are many

// The lowest and the highest: there may be more values than a call takes arguments.
const ends = (values) => [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];

export class HeatMap {
  constructor(place, title) {
    this.canvas = h("canvas", { class: "map", role: "img", "aria-label": `${title} of each rank over time` });
    this.said = h("p", { class: "aside" }, "");
    this.figure = h("figure", { class: "chart whole" }, h("figcaption", {}, title), this.canvas, this.said);
    place.append(this.figure);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.tell());
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.figure);
  }

  set(series, format) {
    this.series = [...series].sort((a, b) => (a.rank ?? -1) - (b.rank ?? -1) || a.host.localeCompare(b.host) || a.part.localeCompare(b.part));
    this.format = format;
    [this.least, this.most] = ends(series.flatMap((each) => each.mean).filter((value) => value !== null));
    [this.first, this.last] = ends(series.flatMap((each) => [each.times[0], each.times.at(-1)]));
    this.draw();
    this.tell();
  }

  draw() {
    if (!this.series) return;
    const ratio = devicePixelRatio || 1;
    this.row = Math.max(4, Math.min(ROW, Math.floor(640 / this.series.length)));
    this.width = Math.max(160, this.figure.clientWidth - 24);
    const height = this.row * this.series.length;
    Object.assign(this.canvas, { width: this.width * ratio, height: height * ratio });
    Object.assign(this.canvas.style, { width: `${this.width}px`, height: `${height}px` });
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const span = this.last - this.first || 1;
    this.series.forEach((each, number) => {
      each.mean.forEach((value, at) => {
        if (value === null) return;
        const from = ((each.times[at] - this.first) / span) * this.width;
        const to = at + 1 < each.times.length ? ((each.times[at + 1] - this.first) / span) * this.width : this.width;
        const share = this.most > this.least ? (value - this.least) / (this.most - this.least) : 0.5;
        pen.fillStyle = `hsl(214 70% ${88 - 62 * share}%)`;
        pen.fillRect(from, number * this.row, Math.max(1, to - from + 0.5), this.row - 1);
      });
    });
  }

  name(each) {
    return `${each.rank === null ? each.host : `rank ${each.rank}`}${each.part ? ` ${each.part}` : ""}`;
  }

  tell(words) {
    this.said.textContent = words ?? `${this.series?.length ?? 0} rows, ${this.name(this.series[0])} on top; light is ${this.format(this.least)}, dark is ${this.format(this.most)}`;
  }

  point(event) {
    const number = Math.floor(event.offsetY / this.row);
    const each = this.series?.[number];
    if (!each) return;
    const time = this.first + (event.offsetX / this.width) * (this.last - this.first);
    let at = each.times.findIndex((begin) => begin > time) - 1;
    if (at < 0) at = each.times.length - 1;
    this.tell(`${this.name(each)} at ${clock(each.times[at])}: ${this.format(each.mean[at])}`);
  }

  close() {
    this.watch.disconnect();
    this.figure.remove();
  }
}
