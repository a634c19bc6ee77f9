// A window of the timeline in detail: asked for while the job runs, and taken as a file for Perfetto.

import { address, get, ofJob, post } from "./api.js";
import { bytes, h, notice, select } from "./dom.js";

const EVERY = 1000; // milliseconds between two looks at one that is recorded
const LENGTHS = [2, 10, 30, 60]; // seconds

export function showWindow(place, job) {
  let length = 10;
  let isOver = false;
  let timer = null;
  const button = h("button", { type: "button", class: "record", onclick: record }, "Record in detail");
  const lengths = select("Seconds to record", LENGTHS.map((each) => [String(each), `${each} s`]), String(length), (value) => (length = Number(value)));
  const said = h("span", { class: "recorded", role: "status" });
  const notes = h("ul", { class: "aside window-notes" });
  const controls = h("span", { class: "together" }, button, lengths);
  place.append(h("div", { class: "filters" }, controls, said), notes);

  async function record() {
    button.disabled = true;
    try {
      await post(ofJob(job.name, "window"), { seconds: length });
      notice("");
    } catch (error) {
      notice(error.message);
    }
    look();
  }

  async function look() {
    clearTimeout(timer);
    try {
      const found = await get(ofJob(job.name, "window"));
      if (!isOver) show(found);
    } catch (error) {
      if (isOver) return;
      notice(error.message);
      if (!error.isForGood) timer = setTimeout(look, EVERY);
    }
  }

  function show(found) {
    controls.hidden = job.state.is_final;
    button.disabled = found.is_recording;
    notes.replaceChildren(...found.said.map((each) => h("li", {}, each)));
    notes.hidden = !found.said.length;
    if (found.is_recording) {
      said.replaceChildren(`Recording ${found.seconds} s, from the next step of each rank on …`);
      timer = setTimeout(look, EVERY);
    } else if (found.has_failed) said.replaceChildren("Nothing was recorded.");
    else if (found.size !== null) {
      const link = h("a", { class: "button", href: address(ofJob(job.name, "window/trace")), download: "" }, `Download the trace (${bytes(found.size)})`);
      said.replaceChildren(link, " Open it in Perfetto.");
    } else said.replaceChildren();
  }

  look();
  return {
    reload: look,
    close() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
