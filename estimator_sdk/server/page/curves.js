// Metrics over time, by rank.

import { h } from "./dom.js";

export function showCurves(place) {
  place.append(h("p", { class: "nothing" }, "No curves yet."));
  return { close() {} };
}
