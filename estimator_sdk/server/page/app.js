// The frame around each view: which one is shown, the connection to the server, the theme, the keys.

import { Changes, Refused, get } from "./api.js";
import { notice } from "./dom.js";
import { showJob } from "./job.js";
import { showTable } from "./table.js";

let changes = null;
let view = null;
let isRefused = false;

function route() {
  const [, kind, name, part, others] = location.hash.split("/");
  if (kind !== "jobs" || !name) return { job: null };
  return { job: decodeURIComponent(name), part: part || "logs", others: (others ?? "").split(",").map(decodeURIComponent).filter(Boolean) };
}

function connection(state, words) {
  const place = document.getElementById("connection");
  place.className = `connection ${state}`;
  place.textContent = words;
}

async function away() {
  connection("away", "server away, trying again");
  try {
    await get("jobs", { limit: 1 });
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      isRefused = true;
      notice("The console was started again. Open the address that it has printed.");
    }
  }
}

function show() {
  const { job, part, others } = route();
  const main = document.getElementById("main");
  if (view && view.job === job && job !== null) {
    view.showPart(part, others);
    return;
  }
  view?.close();
  changes?.close();
  notice("");
  main.replaceChildren();
  view = job === null ? showTable(main) : showJob(main, job, part, others);
  let isFirst = true;
  const shown = view;
  changes = new Changes(job, {
    open() {
      connection("here", "live");
      if (isRefused) notice("");
      isRefused = false;
      shown.reload(isFirst);
      isFirst = false;
    },
    away,
    jobs: (change) => shown.jobs(change),
    stale: () => shown.reload(),
    log: () => shown.log?.(),
    beat: () => shown.beat?.(),
  });
}

function chooseTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  view?.themed?.();
}

function key(event) {
  const isTyping = event.target.closest("input:not([type=checkbox]), select, textarea, dialog") !== null;
  if (event.key === "Escape" && event.target.matches("input")) event.target.blur();
  else if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "/") {
    const field = document.querySelector("input[type=search]");
    if (field) {
      field.focus();
      event.preventDefault();
    }
  } else if (event.key === "Escape" && route().job !== null) location.hash = "#/";
  else view?.key?.(event);
}

if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
if (location.search) history.replaceState(null, "", location.pathname + location.hash);
document.getElementById("theme").addEventListener("click", chooseTheme);
addEventListener("hashchange", show);
addEventListener("keydown", key);
show();
