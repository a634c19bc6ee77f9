// The metrics of the model: for each a band over the ranks, or the curve of each rank.

import { get, ofJob } from "./api.js";
import { Chart, aligned, colour, ready, shown } from "./charts.js";
import { h, notice, select } from "./dom.js";

const MOST_RANKS = 64; // that are drawn in one chart

export function showCurves(place, job) {
  let x = "steps";
  let isByRank = false;
  let isOver = false;
  let isLoading = false;
  let timer = null;
  const charts = new Map();
  const said = h("p", { class: "nothing", role: "status" }, "Reading …");
  const grid = h("div", { class: "charts" });
  const byRank = h("button", { type: "button", "aria-pressed": "false", onclick: turn }, "By rank");
  const controls = h("div", { class: "filters" }, select("Over", [["steps", "over steps"], ["times", "over time"]], x, (value) => again(() => (x = value))), byRank);
  place.append(controls, said, grid);

  function turn() {
    again(() => (isByRank = !isByRank));
    byRank.setAttribute("aria-pressed", String(isByRank));
  }

  function again(change) {
    change();
    for (const chart of charts.values()) chart.close();
    charts.clear();
    load();
  }

  async function load() {
    clearTimeout(timer);
    if (isLoading) return;
    isLoading = true;
    try {
      if (!(await ready())) said.textContent = "The library for charts is missing from this installation.";
      const found = await get(ofJob(job.name, "curves"));
      if (isOver) return;
      await Promise.all(found.curves.map(draw));
      said.hidden = found.curves.length > 0;
      said.textContent = found.is_complete ? "This job has no metrics. A line such as `loss: 0.25`, a metric definition or metrics.log() makes one." : "Reading the log …";
      if (!found.is_complete || !job.state.is_final) timer = setTimeout(load, found.is_complete ? 2000 : 500);
    } catch (error) {
      if (!isOver) notice(error.message);
    } finally {
      isLoading = false;
    }
  }

  async function draw(band) {
    const wanted = isByRank;
    const ranks = wanted && band.ranks.length > 1 ? (await get(ofJob(job.name, "curves"), { name: band.name })).ranks : null;
    if (isOver || wanted !== isByRank) return;
    if (!charts.has(band.name)) charts.set(band.name, new Chart(grid, band.name, x === "times"));
    const chart = charts.get(band.name);
    const [low, high] = band.newest;
    chart.caption.textContent = `${band.name}: ${low === high ? shown(low) : `${shown(low)} to ${shown(high)}`}${band.not_finite ? `, ${band.not_finite} not finite` : ""}`;
    if (ranks) drawRanks(chart, ranks.slice(0, MOST_RANKS));
    else drawBand(chart, band);
  }

  function drawBand(chart, band) {
    const blue = colour(0);
    if (band.ranks.length === 1) chart.set([band[x], band.mean], [{ label: "value", stroke: blue }]);
    else chart.set([band[x], band.high, band.mean, band.low], [{ label: "max", stroke: `${blue}66`, width: 1 }, { label: "mean", stroke: blue, width: 2 }, { label: "min", stroke: `${blue}66`, width: 1 }], [{ series: [1, 3], fill: `${blue}33` }]);
  }

  function drawRanks(chart, ranks) {
    const data = aligned(ranks.map((each) => each[x]), ranks.map((each) => each.mean));
    chart.set(data, ranks.map((each, number) => ({ label: each.rank === null ? each.host : `rank ${each.rank}`, stroke: colour(number) })));
  }

  load();
  return {
    themed: () => charts.forEach((chart) => chart.draw()),
    reload: load,
    close() {
      isOver = true;
      clearTimeout(timer);
      charts.forEach((chart) => chart.close());
    },
  };
}
