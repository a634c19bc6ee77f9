// One job: what is happening in words, why it failed, where its time went, and the parts below.

import { plain } from "./ansi.js";
import { AGAIN, get, ofJob, post } from "./api.js";
import { attemptsBar, ledgerBar, phasesBar } from "./bars.js";
import { showCheckpoints } from "./checkpoints.js";
import { MOST_OTHERS } from "./compare.js";
import { showCurves } from "./curves.js";
import { showDoctor } from "./doctor.js";
import { ask, badge, date, h, notice, seconds } from "./dom.js";
import { showInputs } from "./inputs.js";
import { showLogs } from "./logs.js";
import { showMachines } from "./machines.js";
import { showNotes } from "./notes.js";
import { standing } from "./standing.js";
import { showTimeline } from "./timeline.js";

const PARTS = [
  ["logs", "Logs", showLogs],
  ["curves", "Curves", showCurves],
  ["machines", "Machines", showMachines],
  ["timeline", "Timeline", showTimeline],
  ["doctor", "Doctor", showDoctor],
  ["checkpoints", "Checkpoints", showCheckpoints],
  ["notes", "Events", showNotes],
  ["inputs", "Inputs", showInputs],
];

export function showJob(main, name, firstPart, firstOthers) {
  document.title = name;
  const job = { name, state: null, story: null, others: [], listeners: new Set(), compare: compareWith };
  let part = null;
  let ledgerAt = 0;
  let isOver = false;
  let stateTimer = null;
  let storyTimer = null;
  let isTelling = false; // a story is on its way
  let isStale = false; // and there is more to tell
  let asked = 0; // how often for the state
  let answered = 0; // the newest time that it was told
  let wanted = [firstPart, firstOthers];

  const title = h("h1", {}, name);
  const status = h("span", {});
  const facts = h("p", { class: "facts" });
  const now = h("p", { class: "now", role: "status" });
  const actions = h("div", { class: "actions" });
  const why = h("section", { class: "why", hidden: true, "aria-label": "Why it ended" });
  const where = h("section", { class: "where", hidden: true, "aria-label": "Where the ranks are" });
  const bars = h("section", { class: "bars", "aria-label": "Where the time went" });
  const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the job" }, PARTS.map(([key, text]) => h("a", { href: `#/${ofJob(name)}/${key}`, "data-part": key }, text)));
  const place = h("section", { class: "part", "aria-label": "Part" });
  main.append(h("div", { class: "head" }, h("div", { class: "title" }, title, status), actions), facts, now, h("div", { class: "reasons" }, why, where), bars, tabs, place);

  async function loadState() {
    clearTimeout(stateTimer);
    const mine = ++asked;
    try {
      const found = await get(ofJob(name));
      if (isOver || mine < answered) return;
      [job.state, answered] = [found, mine];
    } catch (error) {
      if (isOver || mine !== asked) return;
      notice(error.message);
      if (!error.isForGood) stateTimer = setTimeout(loadState, AGAIN);
      return;
    }
    showState();
    if (!part) showPart(...wanted);
    loadStory();
    loadLedger();
  }

  function showState() {
    const { state } = job;
    status.replaceChildren(badge(state.status));
    showFacts();
    if (actions.dataset.status !== state.status) actions.replaceChildren(...buttons(state)); // or who is about to click misses it
    actions.dataset.status = state.status;
    why.hidden = !state.why;
    why.replaceChildren();
    if (state.why) {
      const [first, ...rest] = state.why.trimEnd().split("\n");
      why.append(h("h2", {}, plain(first)));
      if (rest.join("").trim()) why.append(h("pre", { tabIndex: 0 }, plain(rest.join("\n").replace(/^\n+/, ""))));
      if (state.verdict?.host) why.append(h("button", { type: "button", onclick: toError }, "Jump to the error"));
    }
    if (state.is_final) now.textContent = state.reason && !state.why ? state.reason : "";
    now.hidden = state.is_final && !now.textContent;
  }

  function showFacts() {
    const { state } = job;
    const took = (state.ended ?? Date.now() / 1000) - state.created;
    const hosts = `${state.hosts.length} host${state.hosts.length === 1 ? "" : "s"}`;
    const attempts = state.attempts.length > 1 ? `, ${state.attempts.length} attempts` : "";
    facts.textContent = `${state.backend}, ${hosts}, started ${date(state.created)}, ${seconds(took)}${attempts}`;
  }

  function buttons(state) {
    if (state.is_final) return [h("button", { type: "button", class: "retry", onclick: retry }, "Run again")];
    return [h("button", { type: "button", class: "stop", onclick: stop, disabled: state.status === "Stopping" }, "Stop")];
  }

  async function stop() {
    if (!(await ask(`Stop ${name}? Its ranks get SIGTERM and the grace period to save what they have.`, "Stop it"))) return;
    await act("stop", (found) => notice(found.said));
  }

  async function retry() {
    if (!(await ask(`Run ${name} again, as a new job with the same inputs?`, "Run it again"))) return;
    await act("retry", (found) => (location.hash = `#/${ofJob(found.name)}`));
  }

  async function act(what, done) {
    try {
      done(await post(ofJob(name, what)));
      loadState();
    } catch (error) {
      notice(error.message);
    }
  }

  function toError() {
    const logs = tabs.querySelector("[data-part=logs]");
    if (!logs.hasAttribute("aria-current")) {
      history.pushState(null, "", logs.getAttribute("href"));
      showPart("logs", job.others);
    }
    part.toError();
  }

  async function loadStory() {
    clearTimeout(storyTimer);
    if (!job.state?.has_logs) return;
    if (isTelling) {
      isStale = true;
      return;
    }
    [isTelling, isStale] = [true, false];
    const found = await get(ofJob(name, "story")).catch((error) => ({ error }));
    isTelling = false;
    if (isOver) return;
    if (!found.error) showStory(found);
    else if (!job.state.is_final) now.textContent = found.error.message;
    if (isStale) loadStory();
    else if (found.error && !found.error.isForGood) storyTimer = setTimeout(loadStory, AGAIN);
    else if (!found.error && !found.is_complete) storyTimer = setTimeout(loadStory, 50);
  }

  function showStory(found) {
    job.story = found;
    if (!job.state.is_final) now.textContent = found.now;
    for (const told of job.listeners) told();
    showBars();
    showWhere();
  }

  async function loadLedger() {
    if (!job.state?.has_logs) return;
    if (!job.state.is_final && Date.now() - ledgerAt < 10000) return;
    const mine = (ledgerAt = Date.now());
    const found = await get(ofJob(name, "ledger")).catch((error) => ({ error: error.message }));
    if (isOver || mine !== ledgerAt) return;
    job.ledger = found;
    showBars();
  }

  function showBars() {
    const made = [attemptsBar(job.state), job.story && phasesBar(job.story), job.ledger && ledgerBar(job.ledger)];
    bars.replaceChildren(...made.filter(Boolean));
  }

  function showWhere() {
    const told = JSON.stringify(job.story.standing);
    if (told === where.dataset.told) return; // what is open stays so
    where.dataset.told = told;
    where.hidden = !job.story.standing;
    where.replaceChildren(...(job.story.standing ? standing(job.story.standing) : []));
  }

  // The jobs beside this one are in the address too, so that a link to it shows them.
  function compare(names) {
    job.others = names;
    const suffix = names.length ? `/${names.map(encodeURIComponent).join(",")}` : "";
    for (const tab of tabs.children) tab.setAttribute("href", `#/${ofJob(name)}/${tab.dataset.part}${suffix}`);
  }

  // One that is chosen in the page: the address follows.
  function compareWith(names) {
    compare(names);
    history.replaceState(null, "", tabs.querySelector("[aria-current]").getAttribute("href"));
  }

  function showPart(key, others) {
    wanted = [key, others];
    if (!job.state) return; // it is shown once that is there
    compare([...new Set(others)].filter((each) => each !== name).slice(0, MOST_OTHERS));
    const [found, , make] = PARTS.find(([each]) => each === key) ?? PARTS[0];
    for (const tab of tabs.children) {
      if (tab.dataset.part === found) {
        tab.setAttribute("aria-current", "page");
        requestAnimationFrame(() => (tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2));
      } else tab.removeAttribute("aria-current");
    }
    part?.close();
    job.listeners.clear();
    place.replaceChildren();
    part = make(place, job);
  }

  const ticking = setInterval(() => job.state && !job.state.is_final && showFacts(), 1000);
  loadState();
  return {
    job: name,
    showPart,
    // At first for what has changed before the page heard of changes, or could not be asked for.
    reload(isFirst) {
      if (isFirst && job.state?.is_final) return;
      loadState();
      if (isFirst) part?.log?.();
      else part?.reload?.();
    },
    jobs(change) {
      if (change.changed.some((each) => each.name === name)) loadState();
      if (change.removed.includes(name)) notice(`${name} was removed.`);
    },
    log() {
      part?.log?.();
      loadStory();
      loadLedger();
    },
    beat: () => job.state && !job.state.is_final && loadLedger(),
    themed: () => part?.themed?.(),
    key: (event) => part?.key?.(event),
    close() {
      isOver = true;
      clearInterval(ticking);
      clearTimeout(stateTimer);
      clearTimeout(storyTimer);
      part?.close();
    },
  };
}
