// What happened, in the sentences that `fit()` prints.

import { plain } from "./ansi.js";
import { clock, h } from "./dom.js";

export function showNotes(place, job) {
  const list = h("ol", { class: "notes" });
  place.append(list);
  function show() {
    const notes = job.story?.notes ?? [];
    if (!notes.length) list.replaceChildren(h("li", { class: "nothing" }, "Nothing out of the ordinary has happened."));
    else list.replaceChildren(...notes.map((each) => h("li", {}, h("time", {}, clock(each.time)), h("span", { class: "text" }, plain(each.text)))));
  }
  job.listeners.add(show);
  show();
  return { close() {} };
}
