// The log of a job: any part of it, from the first to the last byte, and its end as it grows.

import { AGAIN, address, get, ofJob } from "./api.js";
import { painted, ready } from "./ansi.js";
import { clock, fill, h, notice, select } from "./dom.js";
import { searchPanel } from "./search.js";

const LINES = 200; // of one page
const MOST_LINES = 2000; // that the document holds
const NEAR = 300; // pixels from an edge at which more is loaded

export function showLogs(place, job) {
  const choice = { attempt: "", host: "", rank: "", stream: "" };
  let pages = []; // in the order of the lines: each with its element, its cursors, whether it is the start or the end
  let isFollowing = true;
  let loading = null;
  let hasGrown = false;
  let isPumping = false;
  let generation = 0;
  let shown = 0; // that of the pages

  const attempts = select("Attempt", [["", "newest attempt"]], "", (attempt) => again({ attempt }));
  const ranks = select("Rank", [["", "all ranks"]], "", (rank) => again({ rank }));
  const hosts = select("Host", [["", "all hosts"], ...job.state.hosts.map((each) => [each, each])], "", (host) => again({ host }));
  const streams = select("Stream", [["", "all streams"], ["stdout", "stdout"], ["stderr", "stderr"], ["toolkit", "toolkit"]], "", (stream) => again({ stream }));
  const follow = h("button", { type: "button", class: "follow", "aria-pressed": "true", onclick: () => setFollowing(!isFollowing) }, "Follow");
  const toStart = h("button", { type: "button", onclick: () => jump({ after: "start" }) }, "First line");
  const toEnd = h("button", { type: "button", onclick: () => jump({}) }, "Last line");
  const wrap = h("button", { type: "button", "aria-pressed": "true", onclick: () => wrap.setAttribute("aria-pressed", String(!box.classList.toggle("nowrap"))) }, "Wrap");
  const download = h("a", { class: "button", download: true }, "Download");
  const box = h("div", { class: "log", role: "log", "aria-label": "Log", "aria-live": "off", tabIndex: 0 });
  const open = h("div", { class: "open" });
  const search = searchPanel(job, choice, (line) => jump({ at: line.time - 0.001 }, line));
  place.append(
    h("div", { class: "filters" }, attempts, ranks, hosts, streams, search.field, follow, toStart, toEnd, wrap, download),
    search.results,
    box,
  );
  box.addEventListener("scroll", scrolled, { passive: true });
  box.addEventListener("wheel", (event) => event.deltaY < 0 && setFollowing(false), { passive: true });
  job.listeners.add(choices);
  choices();

  function choices() {
    const seen = (job.story?.ranks ?? []).filter((each) => each.rank !== null).map((each) => String(each.rank));
    if (ranks.options.length !== seen.length + 1) fill(ranks, [["", "all ranks"], ...seen.map((each) => [each, `rank ${each}`])], choice.rank);
    ranks.hidden = !seen.length;
    hosts.hidden = job.state.hosts.length === 1;
    const count = job.state.attempts.length;
    if (attempts.options.length !== count + 1) fill(attempts, [["", "newest attempt"], ...job.state.attempts.map((each) => [String(each.number), `attempt ${each.number}`])], choice.attempt);
    attempts.hidden = count < 2;
  }

  function again(changed) {
    Object.assign(choice, changed);
    search.clear();
    jump({});
  }

  function setFollowing(value) {
    isFollowing = value;
    follow.setAttribute("aria-pressed", String(value));
    if (value) {
      if (generation === shown && pages.at(-1)?.isEnd) bottom();
      else jump({});
      if (hasGrown) grown();
    }
  }

  // Show another place of the log: `from` says which one, and `line`, if given, is marked there.
  async function jump(from, line) {
    const isTail = from.after === undefined && from.at === undefined;
    isFollowing = isTail;
    follow.setAttribute("aria-pressed", String(isTail));
    download.href = address(ofJob(job.name, "logs/download"), choice);
    await bring(from, line, isTail, ++generation);
  }

  async function bring(from, line, isTail, mine) {
    try {
      const found = await get(ofJob(job.name, "logs"), { ...choice, ...from, limit: LINES });
      await ready;
      if (mine !== generation) return;
      [pages, shown] = [[page(found)], mine];
      box.replaceChildren(pages[0].element, open);
      showOpen(found);
      if (!found.lines.length && found.is_end) pages[0].element.append(h("p", { class: "nothing" }, "No line yet."));
      if (line) mark(line);
      else if (isTail) bottom();
      else box.scrollTop = 0;
      if (from.at !== undefined) await more(-1, mine);
    } catch (error) {
      if (mine !== generation) return;
      notice(error.message);
      if (!error.isForGood) setTimeout(() => mine === generation && bring(from, line, isTail, mine), AGAIN);
      else shown = mine; // what was there before stays
      return;
    }
    if (hasGrown) grown();
  }

  function page(found) {
    const element = h("div", { class: "page" }, found.lines.map(row));
    return { element, before: found.before, after: found.after, isStart: found.is_start, isEnd: found.is_end, count: found.lines.length };
  }

  function row(line) {
    const origin = line.rank === null ? line.host : `[1,${line.rank}]`;
    const text = h("span", { class: `text ${line.stream}`, dir: "ltr" }, painted(line.text));
    if (line.is_cut) text.append(h("span", { class: "escape" }, ` … ${line.bytes.toLocaleString("en")} bytes; a download has them all`));
    return h("div", { class: "line", "data-time": String(line.time) }, h("time", {}, clock(line.time)), h("span", { class: "origin", title: `${line.host} ${line.stream}` }, origin), text);
  }

  function showOpen(found) {
    open.replaceChildren(...(found.open ?? []).map(row));
  }

  function mark(line) {
    const found = [...box.querySelectorAll(".line")].find((each) => each.dataset.time === String(line.time) && each.querySelector(".text").textContent.length > 0);
    found?.classList.add("marked");
    found?.scrollIntoView({ block: "center" });
  }

  function bottom() {
    box.scrollTop = box.scrollHeight;
  }

  function scrolled() {
    const toBottom = box.scrollHeight - box.clientHeight - box.scrollTop;
    if (box.scrollTop < NEAR && !pages[0]?.isStart) more(-1, generation);
    else if (toBottom < NEAR && !pages.at(-1)?.isEnd) more(1, generation);
  }

  // Load the page before the first one or behind the last one, and let go of what is far away: one at a time.
  function more(direction, mine) {
    loading ??= load(direction, mine).finally(() => (loading = null));
    return loading;
  }

  async function load(direction, mine) {
    if (!pages.length || mine !== shown) return; // other pages are on their way
    const from = direction < 0 ? { before: pages[0].before } : { after: pages.at(-1).after };
    try {
      const found = await get(ofJob(job.name, "logs"), { ...choice, ...from, limit: LINES });
      if (mine !== generation) return;
      if (direction < 0) prepend(page({ ...found, is_end: false }));
      else append(page({ ...found, is_start: false }), found);
      trim(direction);
    } catch (error) {
      if (mine !== generation) return;
      notice(error.message);
      if (direction > 0 && !error.isForGood) setTimeout(grown, AGAIN);
    }
  }

  function prepend(made) {
    const height = box.scrollHeight;
    pages.unshift(made);
    box.prepend(made.element);
    box.scrollTop += box.scrollHeight - height;
  }

  function append(made, found) {
    if (made.count || pages.length === 0) {
      pages.at(-1)?.element.querySelector(".nothing")?.remove();
      pages.push(made);
      box.insertBefore(made.element, open);
    } else Object.assign(pages.at(-1), { after: made.after, isEnd: made.isEnd });
    showOpen(found);
    if (isFollowing) bottom();
  }

  function trim(direction) {
    let count = pages.reduce((sum, each) => sum + each.count, 0);
    while (count > MOST_LINES && pages.length > 1) {
      const gone = direction < 0 ? pages.pop() : pages.shift();
      gone.element.remove();
      count -= gone.count;
      const edge = direction < 0 ? pages.at(-1) : pages[0];
      if (direction < 0) edge.isEnd = false;
      else edge.isStart = false;
    }
  }

  // The log has grown: follow it, page by page; what is far behind its end is passed over.
  async function grown() {
    hasGrown = true;
    if (isPumping) return;
    isPumping = true;
    try {
      for (let round = 1; hasGrown && isFollowing; round++) {
        await loading;
        if (!isFollowing || generation !== shown) break; // or once the pages that are on their way are there
        hasGrown = false;
        const mine = generation;
        if (round % 4) await more(1, mine);
        else await jump({});
        if (mine === generation && !pages.at(-1)?.isEnd) hasGrown = true;
      }
      if (!isFollowing && pages.length) pages.at(-1).isEnd = false;
    } finally {
      isPumping = false;
    }
  }

  jump({});
  return {
    log: grown,
    reload: () => (isFollowing ? jump({}) : undefined),
    toError() {
      const { verdict } = job.state;
      if (!verdict) return;
      const rank = verdict.rank === null ? "" : String(verdict.rank);
      Object.assign(choice, { attempt: "", host: verdict.host ?? "", rank, stream: "" });
      hosts.value = choice.host;
      ranks.value = rank;
      streams.value = "";
      jump({});
      box.scrollIntoView({ block: "nearest" });
    },
    key(event) {
      if (event.key === "f") setFollowing(!isFollowing);
      else if (event.key === "g") jump({ after: "start" });
      else if (event.key === "G") jump({});
    },
    close() {
      generation++;
      search.clear();
    },
  };
}
