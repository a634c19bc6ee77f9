// The table of all jobs: filter, sort, pages, and rows that change while one looks.

import { get, ofJob } from "./api.js";
import { MOST_OTHERS } from "./compare.js";
import { badge, date, h, notice, seconds, select } from "./dom.js";

const COLUMNS = [
  ["name", "Job"],
  ["status", "Status"],
  ["backend", "Backend"],
  ["hosts", "Hosts"],
  ["created", "Started"],
  ["seconds", "Time"],
];
const STATUSES = ["InProgress", "Completed", "Failed", "Stopping", "Stopped"];
const MOVING = new Set(["status", "seconds"]);
const choice = { text: "", status: "", backend: "", sort: "-created" };
const chosen = new Set(); // names of jobs, on whichever page they are, in the order in which they were chosen

export function showTable(main) {
  document.title = "Jobs";
  const rows = new Map();
  let cursors = [null];
  let next = null;
  let timer = null;
  let newest = 0;
  let answered = 0; // the newest that was
  let isStale = false; // what is on its way may be
  const told = new Map(); // meanwhile, by the names of jobs
  let drawn = ""; // what was answered, and to what

  const search = h("input", { type: "search", placeholder: "Filter by name ( / )", "aria-label": "Filter by name", value: choice.text });
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => again({ text: search.value.trim() }), 120);
  });
  const statuses = select("Status", [["", "every status"], ...STATUSES.map((each) => [each, each])], choice.status, (status) => again({ status }));
  const backend = h("input", { type: "text", class: "short", placeholder: "backend", "aria-label": "Backend", value: choice.backend });
  backend.addEventListener("change", () => again({ backend: backend.value.trim() }));
  const counted = h("p", { class: "counted", role: "status" });
  const body = h("tbody");
  const heads = h("tr", {}, h("th", { scope: "col", class: "choose" }, h("span", { class: "for-readers" }, "Choose")), COLUMNS.map(([name, text]) => h("th", { scope: "col", class: name, "data-column": name }, h("button", { type: "button", onclick: () => sort(name) }, text))));
  const count = h("span", { role: "status" });
  const curves = h("button", { type: "button", onclick: () => together("curves") }, "Curves over each other");
  const difference = h("button", { type: "button", onclick: () => together("inputs") }, "Difference");
  const none = h("button", { type: "button", class: "quiet", onclick: chooseNone }, "Choose none");
  const comparing = h("div", { class: "filters chosen", hidden: true }, count, curves, difference, none);
  const earlier = h("button", { type: "button", onclick: () => turn(-1) }, "Newer page");
  const later = h("button", { type: "button", onclick: () => turn(1) }, "Next page");
  main.append(
    h("h1", { class: "for-readers" }, "Jobs"),
    h("div", { class: "filters", role: "search" }, search, statuses, backend, counted),
    comparing,
    h("div", { class: "wide", tabIndex: 0, role: "region", "aria-label": "Table of jobs" }, h("table", { class: "jobs" }, h("thead", {}, heads), body)),
    h("div", { class: "turning" }, earlier, later),
  );
  earlier.textContent = "Previous page";

  // The first that was chosen is shown, and the others beside it.
  function together(part) {
    const [first, ...others] = chosen;
    location.hash = `#/${ofJob(first)}/${part}/${others.map(encodeURIComponent).join(",")}`;
  }

  function choose(name, isChosen) {
    if (isChosen) chosen.add(name);
    else chosen.delete(name);
    showChosen();
  }

  function chooseNone() {
    chosen.clear();
    for (const box of body.querySelectorAll("input")) box.checked = false;
    showChosen();
  }

  function showChosen() {
    comparing.hidden = !chosen.size;
    curves.disabled = chosen.size < 2 || chosen.size > MOST_OTHERS + 1;
    difference.disabled = chosen.size !== 2;
    const words = chosen.size < 2 ? "; choose another to compare" : chosen.size > MOST_OTHERS + 1 ? `; at most ${MOST_OTHERS + 1} can be compared` : "";
    count.textContent = `${chosen.size} chosen${words}`;
  }

  function again(changed) {
    Object.assign(choice, changed);
    cursors = [null];
    load();
  }

  function sort(name) {
    again({ sort: choice.sort === `-${name}` ? name : `-${name}` });
  }

  function turn(by) {
    if (by > 0) cursors.push(next);
    else cursors.pop();
    load();
  }

  async function load() {
    const mine = ++newest;
    isStale = false;
    told.clear();
    try {
      const found = await get("jobs", { ...choice, limit: 50, cursor: cursors.at(-1) });
      if (mine !== newest) return;
      next = found.next;
      const made = JSON.stringify([found, choice, cursors]);
      if (made !== drawn) show(found);
      drawn = made;
      told.forEach(redraw);
    } catch (error) {
      if (mine !== newest) return;
      notice(error.message);
    }
    answered = mine;
    if (isStale) load();
  }

  function redraw(job) {
    if (!rows.has(job.name)) return;
    const [shown, made] = [rows.get(job.name), row(job)];
    rows.set(job.name, made);
    keepingFocus(() => shown.replaceWith(made));
    drawn = "";
  }

  function show(found) {
    rows.clear();
    for (const job of found.jobs) rows.set(job.name, row(job));
    keepingFocus(() => body.replaceChildren(...rows.values()));
    if (!found.jobs.length) {
      const words = found.total || choice.text || choice.status || choice.backend ? "No job matches." : "There is no job yet. Start one with `estimator run`.";
      body.append(h("tr", {}, h("td", { colSpan: COLUMNS.length + 1, class: "nothing" }, words)));
    }
    const running = (found.counts.InProgress ?? 0) + (found.counts.Stopping ?? 0);
    counted.textContent = `${found.total.toLocaleString("en")} job${found.total === 1 ? "" : "s"}, ${running} running`;
    earlier.disabled = cursors.length === 1;
    later.disabled = next === null;
    earlier.parentElement.hidden = earlier.disabled && later.disabled;
    for (const head of heads.querySelectorAll("[data-column]")) {
      const name = head.dataset.column;
      const isChosen = choice.sort.replace("-", "") === name;
      if (isChosen) head.setAttribute("aria-sort", choice.sort.startsWith("-") ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  // Who goes from row to row by keys stays at the job where he is.
  function keepingFocus(draw) {
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const { name } = focused?.closest("tr").dataset ?? {};
    draw();
    if (focused && !focused.isConnected) rows.get(name)?.querySelector(focused.localName)?.focus();
  }

  function row(job) {
    const link = h("a", { href: `#/${ofJob(job.name)}`, title: job.name }, job.name);
    return h(
      "tr",
      { "data-name": job.name },
      h("td", { class: "choose" }, h("input", { type: "checkbox", "aria-label": `Choose ${job.name}`, checked: chosen.has(job.name), onchange: (event) => choose(job.name, event.target.checked) })),
      h("td", { class: "name" }, link),
      h("td", {}, badge(job.status)),
      h("td", {}, job.backend),
      h("td", { class: "number" }, String(job.hosts)),
      h("td", { class: "when" }, date(job.created)),
      h("td", { class: "number", "data-created": job.ended ? null : job.created }, seconds((job.ended ?? Date.now() / 1000) - job.created)),
    );
  }

  function tick() {
    for (const cell of body.querySelectorAll("[data-created]")) {
      cell.textContent = seconds(Date.now() / 1000 - Number(cell.dataset.created));
    }
  }

  const ticking = setInterval(tick, 1000);
  showChosen();
  load();
  return {
    job: null,
    reload: load,
    // A change of a row that is shown is drawn in place; what may move rows loads the page again.
    jobs(change) {
      for (const name of change.removed) choose(name, false);
      for (const job of change.changed) redraw(job);
      const mayMove = change.removed.length || choice.status || MOVING.has(choice.sort.replace("-", "")) || change.changed.some((job) => !rows.has(job.name));
      if (answered !== newest) {
        for (const job of change.changed) told.set(job.name, job);
        isStale = true;
      } else if (mayMove) load();
    },
    key(event) {
      if (event.key === "x") document.activeElement.closest("tr")?.querySelector("input")?.click();
      if (event.key !== "j" && event.key !== "k") return;
      const links = [...body.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      links[Math.max(0, Math.min(links.length - 1, at))]?.focus();
    },
    close() {
      clearInterval(ticking);
      clearTimeout(timer);
      newest++;
    },
  };
}
