// The field in which a job beside the one that is shown is chosen, by a part of its name.

import { get, ofJob } from "./api.js";
import { h, notice } from "./dom.js";

export const MOST_OTHERS = 7; // jobs that are shown beside another
const SHOWN = 20; // names that are offered
const QUIET = 150; // milliseconds after a key

let count = 0;

export function jobField(words, except, chosen) {
  let timer = null;
  let names = [];
  const list = h("datalist", { id: `jobs-${++count}` });
  const field = h("input", { type: "text", class: "beside", placeholder: words, "aria-label": words, list: list.id, autocomplete: "off" });

  async function offer() {
    try {
      const found = await get("jobs", { text: field.value.trim(), limit: SHOWN });
      names = found.jobs.map((each) => each.name).filter((name) => !except().includes(name));
      list.replaceChildren(...names.map((name) => h("option", { value: name })));
    } catch (error) {
      notice(error.message);
    }
  }

  // A job of just that name, which need not be among those that are offered.
  async function named(text) {
    if (except().includes(text)) return null;
    try {
      return (await get(ofJob(text))).name;
    } catch {
      return null;
    }
  }

  // A name as it stands, or a part of one that only one job has.
  async function take() {
    clearTimeout(timer);
    const text = field.value.trim();
    if (!text) return;
    await offer();
    let name = names.includes(text) ? text : names.length === 1 ? names[0] : null;
    if (name === null && names.length >= SHOWN - 1) name = await named(text);
    if (name === null) {
      notice(names.length ? `More than one job has ${text} in its name; write more of it.` : `No other job has ${text} in its name.`);
      return;
    }
    notice("");
    field.value = "";
    chosen(name);
  }

  field.addEventListener("focus", offer);
  field.addEventListener("change", take);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(offer, QUIET);
  });
  return [field, list];
}
