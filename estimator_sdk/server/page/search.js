// Search a log on the server, from its end to its begin, and show what it finds as it comes.

import { get, ofJob } from "./api.js";
import { painted } from "./ansi.js";
import { bytes, clock, h } from "./dom.js";

const MOST_FOUND = 500;

export function searchPanel(job, choice, chosen) {
  const field = h("input", { type: "search", placeholder: "Search ( / )", "aria-label": "Search the log" });
  const said = h("p", { class: "said", role: "status" });
  const list = h("ol", { class: "found" });
  const results = h("div", { class: "results", hidden: true }, h("div", { class: "row" }, said, h("button", { type: "button", class: "quiet", onclick: clear }, "Close")), list);
  let generation = 0;

  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") start(field.value);
    if (event.key === "Escape") clear();
  });
  field.addEventListener("search", () => field.value || clear());

  function clear() {
    generation++;
    results.hidden = true;
    list.replaceChildren();
  }

  async function start(text) {
    clear();
    if (!text) return;
    const mine = generation;
    results.hidden = false;
    let before = null;
    let count = 0;
    let searched = 0;
    said.textContent = "searching …";
    try {
      for (;;) {
        const found = await get(ofJob(job.name, "logs/search"), { ...choice, text, before });
        if (mine !== generation) return;
        searched += found.searched;
        count += found.lines.length;
        list.append(...found.lines.map(row));
        const number = `${count}${found.is_over ? "" : "+"} line${count === 1 ? "" : "s"}`;
        said.textContent = found.is_over ? `${number} in ${bytes(searched)}` : `${number}, searched ${bytes(searched)} …`;
        if (found.is_over) return;
        if (count >= MOST_FOUND) {
          said.textContent = `${number}, the newest; narrow the search, or the choice above, for earlier ones`;
          return;
        }
        before = found.before;
      }
    } catch (error) {
      if (mine === generation) said.textContent = error.message;
    }
  }

  function row(line) {
    const origin = line.rank === null ? line.host : `[1,${line.rank}]`;
    return h("li", {}, h("button", { type: "button", onclick: () => chosen(line) }, h("time", {}, clock(line.time)), h("span", { class: "origin" }, origin), h("span", { class: "text", dir: "ltr" }, painted(line.text))));
  }

  return { field, results, clear };
}
