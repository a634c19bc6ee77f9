// The metrics of the model: for each a band over the ranks, or the curve of each rank, or of each of several jobs.

import { AGAIN, get, ofJob } from "./api.js";
import { Chart, aligned, colour, ready, shown } from "./charts.js";
import { MOST_OTHERS, jobField } from "./compare.js";
import { h, notice, select } from "./dom.js";

const MOST_RANKS = 64; // that are drawn in one chart
const MANY = 12; // metrics, of which some can be chosen

export function showCurves(place, job) {
  let x = "steps";
  let isByRank = false;
  let text = ""; // that the names of metrics have
  let isOver = false;
  let isLoading = false;
  let asked = 0; // how often it was asked for something else
  let timer = null;
  const charts = new Map();
  const said = h("p", { class: "nothing", role: "status" }, "Reading …");
  const grid = h("div", { class: "charts" });
  const more = h("p", { class: "aside", role: "status" });
  const filter = h("input", { type: "search", class: "short", hidden: true, placeholder: "Every metric", "aria-label": "Metrics with this in their name", autocomplete: "off", onchange: () => again(() => (text = filter.value.trim())) });
  const byRank = h("button", { type: "button", "aria-pressed": "false", onclick: turn }, "By rank");
  const beside = h("ul", { class: "jobs-beside", "aria-label": "Jobs beside this one" });
  const states = new Map();
  const field = jobField("Put a job beside it", () => [job.name, ...job.others], add);
  const controls = h("div", { class: "filters" }, select("Over", [["steps", "over steps"], ["times", "over time"]], x, (value) => again(() => (x = value))), byRank, filter, field);
  place.append(controls, beside, said, more, grid);

  function add(name) {
    if (job.others.length >= MOST_OTHERS) notice(`At most ${MOST_OTHERS} jobs are shown beside another; take one away first.`);
    else put([...job.others, name]);
  }

  function put(names) {
    for (const name of states.keys()) if (!names.includes(name)) states.delete(name);
    job.compare(names);
    again(showBeside);
  }

  function showBeside() {
    const names = job.others.length ? [job.name, ...job.others] : [];
    byRank.disabled = names.length > 0;
    beside.replaceChildren(
      ...names.map((name, number) => {
        const words = [h("span", { class: "line-of", style: { backgroundColor: colour(number) } }), name];
        const away = h("button", { type: "button", class: "quiet", "aria-label": `Take ${name} away`, onclick: () => put(job.others.filter((each) => each !== name)) }, "×");
        return h("li", {}, words, number ? away : null);
      }),
    );
  }

  function turn() {
    again(() => (isByRank = !isByRank));
    byRank.setAttribute("aria-pressed", String(isByRank));
  }

  function again(change) {
    change();
    asked++;
    for (const chart of charts.values()) chart.close();
    charts.clear();
    load();
  }

  async function load() {
    clearTimeout(timer);
    if (isLoading) return;
    isLoading = true;
    const [wanted, mine] = [asked, job.others];
    try {
      if (!(await ready())) said.textContent = "The library for charts is missing from this installation.";
      const [found, ...others] = await Promise.all([get(ofJob(job.name, "curves"), { text }), ...mine.map(other)]);
      if (isOver || wanted !== asked) return;
      if (mine.length) drawJobs([found, ...others], [job.name, ...mine]);
      else await Promise.all(found.curves.map(draw));
      if (others.some((each) => !each.is_complete)) found.is_complete = false;
      said.hidden = found.curves.length > 0 || charts.size > 0;
      filter.hidden = !text && found.total <= MANY;
      more.textContent = found.total > found.curves.length ? `${found.curves.length} of ${found.total} metrics are shown: write a part of the names of others.` : "";
      said.textContent = found.is_complete && text ? "No metric has this in its name." : found.is_complete ? "This job has no metrics. A line such as `loss: 0.25`, a metric definition or metrics.log() makes one." : "Reading the log …";
      const runs = !job.state.is_final || mine.some((name) => !states.get(name)?.is_final);
      if (!found.is_complete || runs) timer = setTimeout(load, found.is_complete ? 2000 : 500);
    } catch (error) {
      if (isOver) return;
      notice(error.message);
      if (!error.isForGood) timer = setTimeout(load, AGAIN);
    } finally {
      isLoading = false;
      if (!isOver && wanted !== asked) load();
    }
  }

  // One that cannot be read is said, and the others are shown.
  async function other(name) {
    if (states.get(name)?.isForGood) return { curves: [], is_complete: true };
    try {
      if (!states.get(name)?.is_final) states.set(name, await get(ofJob(name)));
      return await get(ofJob(name, "curves"), { text });
    } catch (error) {
      if (error.isForGood) states.set(name, { is_final: true, isForGood: true });
      if (!isOver) notice(error.message);
      return { curves: [], is_complete: error.isForGood === true };
    }
  }

  // Over each other: the mean over the ranks of each job, over steps, or over the time since the job's own start.
  function drawJobs(found, names) {
    const begun = [job.state, ...names.slice(1).map((name) => states.get(name))].map((state) => state?.created ?? 0);
    for (const metric of new Set(found.flatMap((each) => each.curves.map((band) => band.name)))) {
      const shownJobs = names.map((name, number) => ({ name, number, band: found[number].curves.find((band) => band.name === metric) })).filter((each) => each.band);
      if (!charts.has(metric)) charts.set(metric, new Chart(grid, metric, false));
      const chart = charts.get(metric);
      chart.across = x === "times" ? "seconds" : "step";
      chart.say(`${metric}: ${shownJobs.map(({ band }) => shown(band.mean.at(-1))).join(", ")}`);
      const places = shownJobs.map(({ band, number }) => (x === "times" ? band.times.map((time) => time - begun[number]) : band.steps));
      const lines = shownJobs.map(({ name, number }) => ({ label: name, stroke: colour(number), width: 2 }));
      chart.set(aligned(places, shownJobs.map(({ band }) => band.mean)), lines);
    }
  }

  async function draw(band) {
    const wanted = isByRank;
    const ranks = wanted && band.ranks.length > 1 ? (await get(ofJob(job.name, "curves"), { name: band.name })).ranks : null;
    if (isOver || wanted !== isByRank || job.others.length) return;
    if (!charts.has(band.name)) charts.set(band.name, new Chart(grid, band.name, x === "times"));
    const chart = charts.get(band.name);
    const [low, high] = band.newest;
    chart.say(`${band.name}: ${low === high ? shown(low) : `${shown(low)} to ${shown(high)}`}${band.not_finite ? `, ${band.not_finite} not finite` : ""}`);
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

  showBeside();
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
