// What the machines do: a small chart for each host, or of a metric of ranks a heat map that shows the one that differs.

import { get, ofJob } from "./api.js";
import { Chart, aligned, colour, ready, shown } from "./charts.js";
import { bytes, h, notice, select } from "./dom.js";
import { HeatMap } from "./heatmap.js";

const FIRST = "system.cpu.utilization";
const EVERY = 4000; // milliseconds between two looks at a job that runs
const MOST_HOSTS = 64; // that have a chart of their own

export function formatOf(unit) {
  if (unit === "1") return (value) => (value === null || value === undefined ? "–" : `${Number((100 * value).toPrecision(3))} %`);
  if (unit === "By") return (value) => (value === null || value === undefined ? "–" : bytes(Math.round(value)));
  if (unit === "By/s") return (value) => (value === null || value === undefined ? "–" : `${bytes(Math.round(value))}/s`);
  return shown;
}

export function showMachines(place, job) {
  let metric = FIRST;
  let hosts = ""; // names of some, with commas between
  let asked = 0; // how often it was asked for something else
  let isOver = false;
  let isLoading = false;
  let timer = null;
  let known = [];
  const drawn = new Map();
  const said = h("p", { class: "nothing", role: "status" }, "Reading …");
  const grid = h("div", { class: "charts" });
  const chosen = select("Metric", [[FIRST, FIRST]], FIRST, (value) => again(value));
  const meaning = h("span", { class: "aside" });
  const list = h("datalist", { id: "hosts" }, job.state.hosts.map((name) => h("option", { value: name })));
  const field = h("input", { type: "text", class: "beside", placeholder: "Every host", "aria-label": "Hosts, with commas between", list: "hosts", autocomplete: "off", onchange: () => choose(field.value.trim()) });
  const some = job.state.hosts.length > 1 ? [field, list] : null;
  place.append(h("div", { class: "filters" }, chosen, some, meaning), said, grid);

  function again(value) {
    metric = value;
    asked++;
    clear();
    load();
  }

  function choose(names) {
    hosts = names;
    asked++;
    notice("");
    clear();
    load();
  }

  function clear() {
    for (const each of drawn.values()) each.close();
    drawn.clear();
    grid.replaceChildren();
  }

  async function start() {
    try {
      await ready();
      known = (await get("metrics")).metrics;
      chosen.replaceChildren(...known.map((each) => h("option", { value: each.name, selected: each.name === metric }, each.name)));
    } catch (error) {
      notice(error.message);
    }
    if (!isOver) load();
  }

  async function load() {
    clearTimeout(timer);
    if (isLoading) return;
    isLoading = true;
    const mine = asked;
    try {
      const found = await get(ofJob(job.name, "machines"), { metric, host: hosts });
      if (isOver || mine !== asked) return;
      const kind = known.find((each) => each.name === metric);
      meaning.textContent = kind ? kind.meaning : "";
      said.hidden = found.series.length > 0;
      said.textContent = "Nothing was measured of this.";
      draw(found.series, kind);
    } catch (error) {
      if (isOver || mine !== asked) return;
      said.hidden = false;
      said.textContent = error.message;
    } finally {
      isLoading = false;
      if (!isOver && mine !== asked) load();
      else if (!isOver && !job.state.is_final) timer = setTimeout(load, EVERY);
    }
  }

  function draw(series, kind) {
    const format = formatOf(kind?.unit);
    if (kind?.is_of_rank && series.length > 1) {
      if (!drawn.has("map")) drawn.set("map", new HeatMap(grid, metric));
      drawn.get("map").set(series, format);
      return;
    }
    const hosts = [...new Set(series.map((each) => each.host))].slice(0, MOST_HOSTS);
    for (const host of hosts) {
      const own = series.filter((each) => each.host === host);
      if (!drawn.has(host)) drawn.set(host, new Chart(grid, host, true, format, true));
      const lines = own.map((each, number) => ({ label: each.part || (each.rank === null ? "value" : `rank ${each.rank}`), stroke: colour(number) }));
      drawn.get(host).set(aligned(own.map((each) => each.times), own.map((each) => each.mean)), lines);
    }
  }

  start();
  return {
    themed: () => drawn.forEach((each) => each.draw()),
    reload: load,
    close() {
      isOver = true;
      clearTimeout(timer);
      clear();
    },
  };
}
