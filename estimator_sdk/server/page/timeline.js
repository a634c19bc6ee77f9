// What the hosts and ranks did when: phases, checkpoints and training steps, the slower the darker.

import { get, ofJob } from "./api.js";
import { clock, h, notice, seconds, select } from "./dom.js";
import { showWindow } from "./window.js";

const ROW = 16; // pixels
const LABEL = 96;
const EVERY = 4000; // milliseconds between two looks at a job that runs
const COLOURS = { code: "#4f7fd0", requirements: "#8f6fd0", channels: "#2fa3b5", world: "#6da7e8", run: "#8a94a3", checkpoint: "#c9a227", rank: "#8a94a3", moment: "#d0524b" };

export function showTimeline(place, job) {
  const state = { rows: [], first: 0, last: 1, from: 0, to: 1, isWhole: true, fast: 0, slow: 1 };
  let attempt = null;
  let isOver = false;
  let timer = null;
  let held = null;
  const said = h("p", { class: "aside" }, "Reading …");
  const canvas = h("canvas", { class: "map", role: "img", "aria-label": "Timeline of hosts and ranks" });
  const figure = h("figure", { class: "chart whole" }, canvas);
  const attempts = job.state.attempts.map((each) => [String(each.number), `attempt ${each.number}`]).reverse();
  const choice = attempts.length > 1 ? select("Attempt", attempts, attempts[0][0], (value) => again(value)) : null;
  const buttons = [["Zoom in", () => zoom(0.5)], ["Zoom out", () => zoom(2)], ["Earlier", () => move(-0.5)], ["Later", () => move(0.5)], ["Whole", whole]];
  const controls = h("div", { class: "filters" }, choice, buttons.map(([text, act]) => h("button", { type: "button", onclick: act }, text)));
  const more = h("p", { class: "aside" }, `estimator timeline ${job.name} writes every slice to a file for Perfetto.`);
  place.append(controls, said, figure, more);
  const detail = showWindow(place, job);
  figure.hidden = true;

  function again(value) {
    attempt = value;
    state.isWhole = true;
    load();
  }

  function whole() {
    Object.assign(state, { isWhole: true, from: state.first, to: state.last });
    draw();
  }

  function look(from, to) {
    const span = Math.min(Math.max(to - from, 0.001), state.last - state.first);
    const begin = Math.min(Math.max(from, state.first), state.last - span);
    Object.assign(state, { isWhole: false, from: begin, to: begin + span });
    draw();
  }

  function zoom(by) {
    const middle = (state.from + state.to) / 2;
    const half = ((state.to - state.from) / 2) * by;
    look(middle - half, middle + half);
  }

  function move(by) {
    const way = by * (state.to - state.from);
    look(state.from + way, state.to + way);
  }

  async function load() {
    clearTimeout(timer);
    const mine = attempt;
    try {
      const found = await get(ofJob(job.name, "timeline"), { attempt });
      if (isOver || mine !== attempt) return;
      take(found);
      if (!found.is_complete || !job.state.is_final) timer = setTimeout(load, found.is_complete ? EVERY : 100);
    } catch (error) {
      if (isOver || mine !== attempt) return;
      notice(error.message);
      if (!error.isForGood) timer = setTimeout(load, EVERY);
    }
  }

  function take(found) {
    state.rows = found.rows;
    const all = found.rows.flatMap((row) => [...row.slices, ...row.steps]);
    const end = all.reduce((most, each) => Math.max(most, each.ended ?? 0), found.ended ?? found.now);
    for (const each of all) each.ended ??= end;
    state.first = all.reduce((least, each) => Math.min(least, each.began), end);
    state.last = Math.max(end, state.first + 0.001);
    const means = found.rows.flatMap((row) => row.steps.map((each) => each.mean)).sort((a, b) => a - b);
    state.fast = means[Math.floor(0.05 * (means.length - 1))] ?? 0; // what lies beyond these has the colour of the end
    state.slow = means[Math.ceil(0.95 * (means.length - 1))] ?? 1;
    if (state.isWhole) Object.assign(state, { from: state.first, to: state.last });
    figure.hidden = !found.rows.length;
    draw();
    tell();
  }

  function tell(words) {
    if (held !== null) return;
    said.textContent = words ?? summary();
  }

  function summary() {
    if (!state.rows.length) return "Nothing has been told of this attempt.";
    const ranks = state.rows.filter((row) => row.steps.length);
    if (!ranks.length) return `${state.rows.length} rows; no training step was told.`;
    const means = ranks.map((row) => row.steps.reduce((sum, each) => sum + each.mean * each.steps, 0) / row.steps.reduce((sum, each) => sum + each.steps, 0));
    const slowest = means.indexOf(Math.max(...means));
    const least = Math.min(...means);
    if (ranks.length === 1) return `${ranks[0].name}: a step takes ${time(means[0])}.`;
    return `A step takes ${time(least)} to ${time(means[slowest])}; ${ranks[slowest].name} on ${ranks[slowest].host} is the slowest. Dark is slow.`;
  }

  const time = (value) => (value < 1 ? `${Number((1000 * value).toPrecision(3))} ms` : seconds(value));

  function draw() {
    const ratio = devicePixelRatio || 1;
    const width = Math.max(160, figure.clientWidth - 24);
    const height = ROW * (state.rows.length + 1);
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--text");
    pen.font = "12px system-ui";
    pen.textBaseline = "middle";
    state.width = width - LABEL;
    const at = (when) => LABEL + ((when - state.from) / (state.to - state.from)) * state.width;
    pen.fillStyle = ink;
    pen.fillText(clock(state.from).slice(0, 8), LABEL, ROW / 2);
    const end = clock(state.to).slice(0, 8);
    pen.fillText(end, width - pen.measureText(end).width, ROW / 2);
    state.rows.forEach((row, number) => {
      const top = ROW * (number + 1);
      pen.fillStyle = ink;
      pen.fillText(row.name === "phases" ? row.host : row.name, 0, top + ROW / 2, LABEL - 8);
      pen.save();
      pen.beginPath();
      pen.rect(LABEL, top, state.width, ROW - 1);
      pen.clip();
      for (const each of row.slices) drawSlice(pen, each, at, top);
      for (const each of row.steps) {
        const share = state.slow > state.fast ? Math.min(1, Math.max(0, (each.mean - state.fast) / (state.slow - state.fast))) : 0.5;
        pen.fillStyle = `hsl(214 70% ${88 - 62 * share}%)`;
        pen.fillRect(at(each.began), top, Math.max(1, at(each.ended) - at(each.began) - 0.5), ROW - 4);
      }
      pen.restore();
    });
  }

  function drawSlice(pen, each, at, top) {
    const wide = Math.max(each.kind === "moment" ? 2 : 1, at(each.ended) - at(each.began));
    pen.fillStyle = COLOURS[each.kind] ?? COLOURS[each.name] ?? COLOURS.run;
    if (each.kind === "rank" && each.code) pen.fillStyle = COLOURS.moment;
    if (each.kind === "rank") pen.fillRect(at(each.began), top + ROW - 4, wide, 3);
    else if (each.kind === "checkpoint") pen.fillRect(at(each.began), top + ROW / 2, wide, ROW / 2 - 1);
    else pen.fillRect(at(each.began), top, wide, ROW - 1);
  }

  const when = (event) => state.from + (Math.min(Math.max(event.offsetX - LABEL, 0), state.width) / state.width) * (state.to - state.from);

  function point(event) {
    const row = state.rows[Math.floor(event.offsetY / ROW) - 1];
    if (!row) return tell();
    const moment = when(event);
    const near = (2 * (state.to - state.from)) / state.width;
    const holds = (each) => each.began - near <= moment && moment <= each.ended + near;
    const step = row.steps.find(holds);
    const other = row.slices.filter(holds).sort((a, b) => a.ended - a.began - (b.ended - b.began))[0];
    const name = `${row.name} on ${row.host} at ${clock(moment)}`;
    if (step) {
      const which = step.steps === 1 ? `step ${step.last}` : `steps ${step.last - step.steps + 1} to ${step.last}`;
      return tell(`${name}: ${which}, ${time(step.mean)} each`);
    }
    return tell(other ? `${name}: ${other.name}, ${seconds(other.ended - other.began)}` : name);
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => tell());
  canvas.addEventListener("pointerdown", (event) => {
    held = when(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const [from, to] = [held, when(event)].sort((a, b) => a - b);
    held = null;
    if (to - from > (4 * (state.to - state.from)) / state.width) look(from, to);
  });
  canvas.addEventListener("pointercancel", () => (held = null));
  canvas.addEventListener("dblclick", whole);
  const watch = new ResizeObserver(draw);
  watch.observe(figure);
  load();
  return {
    reload() {
      load();
      detail.reload();
    },
    themed: draw,
    close() {
      isOver = true;
      detail.close();
      clearTimeout(timer);
      watch.disconnect();
    },
  };
}
