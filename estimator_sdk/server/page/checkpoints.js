// The snapshots of the checkpoints that this attempt has published.

import { bytes, clock, h, seconds } from "./dom.js";

export function showCheckpoints(place, job) {
  const body = h("tbody");
  const heads = ["Snapshot", "Published", "Files", "Size", "Sent", "Lag"];
  place.append(h("div", { class: "wide", tabIndex: 0, role: "region", "aria-label": "Checkpoints" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))), body)));
  function show() {
    const found = [...(job.story?.checkpoints ?? [])].reverse();
    if (!found.length) {
      body.replaceChildren(h("tr", {}, h("td", { colSpan: heads.length, class: "nothing" }, "This attempt has published no snapshot.")));
      return;
    }
    body.replaceChildren(...found.map((each) => h("tr", {}, h("td", {}, each.name), h("td", { class: "when" }, clock(each.time)), h("td", { class: "number" }, String(each.files)), h("td", { class: "number" }, bytes(each.bytes)), h("td", { class: "number" }, bytes(each.sent)), h("td", { class: "number" }, seconds(each.lag)))));
  }
  job.listeners.add(show);
  show();
  return { close() {} };
}
