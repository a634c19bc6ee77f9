// Attempts, phases of the start, and the ledger: each as one bar with its words below.

import { h, seconds } from "./dom.js";

const NAMES = {
  first_step: "imports and first step",
  lost_steps: "lost steps",
  after_steps: "after the last step",
  ranks_missing: "ranks missing",
  checkpoint_stall: "last checkpoint",
};
const SHOWN_SHARE = 0.004;

function bar(title, parts, words) {
  const total = parts.reduce((sum, each) => sum + each.seconds, 0);
  if (total <= 0) return null;
  const shown = parts.filter((each) => each.seconds / total >= SHOWN_SHARE);
  const said = shown.map((each) => `${each.name} ${seconds(each.seconds)}`).join(", ");
  return h(
    "figure",
    { class: "bar" },
    h("figcaption", {}, h("strong", {}, title), words ? ` ${words}` : ""),
    h(
      "div",
      { class: "strip", role: "img", "aria-label": `${title}: ${said}` },
      shown.map((each) => h("span", { class: `piece ${each.kind}`, title: `${each.name} ${seconds(each.seconds)}`, style: { flexGrow: String(each.seconds / total) } })),
    ),
    h("ul", { class: "legend" }, shown.map((each) => h("li", {}, h("span", { class: `dot ${each.kind}` }), `${each.name} ${seconds(each.seconds)}`))),
  );
}

export function attemptsBar(state) {
  if (state.attempts.length < 2) return null;
  const end = state.ended ?? state.now;
  const parts = state.attempts.map((each) => ({
    name: `attempt ${each.number}${each.verdict ? " (failed)" : ""}`,
    kind: each.verdict ? "lost_steps" : "steps",
    seconds: Math.max(0, (each.ended ?? end) - each.began),
  }));
  return bar("Attempts", parts, "");
}

export function ledgerBar(ledger) {
  if (ledger.error) return h("p", { class: "aside" }, ledger.error);
  const parts = Object.entries(ledger.seconds).map(([kind, taken]) => ({ name: NAMES[kind] ?? kind, kind, seconds: taken }));
  return bar("Goodput", parts, ledger.sentence.replace(/^goodput /, ""));
}

export function phasesBar(story) {
  const slowest = new Map();
  for (const phase of story.phases) {
    if (phase.phase === "run" || phase.ended === null) continue;
    slowest.set(phase.phase, Math.max(slowest.get(phase.phase) ?? 0, phase.ended - phase.began));
  }
  const parts = [...slowest].map(([name, taken]) => ({ name, kind: name, seconds: taken }));
  return bar("Start", parts, "each phase on the slowest host");
}
