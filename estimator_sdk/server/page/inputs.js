// What the job was given: its CreateTrainingJob document and its plan, with secrets hidden, and what another has else.

import { plain } from "./ansi.js";
import { AGAIN, get, ofJob } from "./api.js";
import { jobField } from "./compare.js";
import { h, notice } from "./dom.js";

const KINDS = { "+": "added", "-": "removed", "@": "place" };

function difference(title, lines) {
  const shown = lines.map((line) => h("span", { class: KINDS[line[0]] ?? null }, plain(line), "\n"));
  return [h("h3", {}, title), h("pre", { tabIndex: 0, class: "document difference" }, shown)];
}

function fileDifference(file) {
  if (!file.is_text) return [h("h3", {}, `${file.name} (${file.change})`), h("p", { class: "aside" }, "It is not a text, or too long to be compared line by line.")];
  if (!file.lines.length) return [h("h3", {}, `${file.name} (${file.change})`)];
  return difference(`${file.name} (${file.change})`, file.lines);
}

export function showInputs(place, job) {
  let isOver = false;
  let newest = 0;
  const compared = h("section", { class: "compared", "aria-label": "Difference", hidden: true });
  const given = h("div");
  const back = h("button", { type: "button", hidden: true, onclick: () => beside(null) }, "Show the inputs alone");
  place.append(h("div", { class: "filters" }, jobField("Compare with a job", () => [job.name], beside), back), compared, given);

  function beside(name) {
    job.compare(name === null ? [] : [name, ...job.others.filter((each) => each !== name)]);
    compare();
  }

  async function compare() {
    const mine = ++newest;
    const [other] = job.others;
    compared.hidden = back.hidden = other === undefined;
    given.hidden = !compared.hidden;
    if (other === undefined) return;
    compared.replaceChildren(h("p", { class: "waiting" }, "Comparing …"));
    try {
      const found = await get(ofJob(job.name, "difference"), { other });
      if (!isOver && mine === newest) show(other, found);
    } catch (error) {
      if (!isOver && mine === newest) compared.replaceChildren(h("p", { class: "nothing" }, error.message));
    }
  }

  function show(other, found) {
    const code = found.files.flatMap(fileDifference);
    compared.replaceChildren(
      h("h2", {}, `From ${job.name} (-) to ${other} (+)`),
      ...(found.request.length ? difference("CreateTrainingJob document", found.request) : [h("p", {}, "The documents are the same.")]),
      ...(found.why ? [h("p", { class: "nothing" }, found.why)] : code.length ? code : [h("p", { class: "same" }, "The code is the same.")]),
    );
    if (found.is_cut) compared.append(h("p", { class: "aside" }, "There is more that differs than is shown."));
  }

  async function load() {
    try {
      const found = await get(ofJob(job.name, "inputs"));
      if (isOver) return;
      if (found.plan) given.append(h("h2", {}, "Plan"), h("pre", { tabIndex: 0, class: "document" }, found.plan));
      given.append(h("h2", {}, "CreateTrainingJob document"), h("pre", { tabIndex: 0, class: "document" }, JSON.stringify(found.request, null, 2)));
    } catch (error) {
      if (isOver) return;
      notice(error.message);
      if (!error.isForGood) setTimeout(() => isOver || load(), AGAIN);
    }
  }

  load();
  compare();
  return {
    close() {
      isOver = true;
    },
  };
}
