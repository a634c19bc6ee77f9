// Where the ranks are that stand still: equal stacks folded into one, those of the fewest ranks first.

import { plain } from "./ansi.js";
import { clock, h } from "./dom.js";

const OPEN = 2; // stacks that are shown from the start

export function standing(told) {
  const total = told.stacks.reduce((sum, each) => sum + each.count, 0) || 1;
  return [
    h("h2", {}, "Where the ranks are"),
    h("p", { class: "aside" }, `${clock(told.time).slice(0, 8)}, equal stacks together, the innermost call first`),
    ...told.stacks.map((each, number) => {
      const place = each.stack.split("\n")[0].trim();
      const share = h("span", { class: "share", style: { width: `${Math.max(2, (100 * each.count) / total)}%` } });
      const head = h("summary", {}, h("span", { class: "who" }, each.who), h("span", { class: "place" }, plain(place)), share);
      return h("details", { class: "stack", open: number < OPEN }, head, h("pre", { tabIndex: 0 }, each.stack.split("\n").flatMap((line) => [plain(line), "\n"]).flat()));
    }),
  ];
}
