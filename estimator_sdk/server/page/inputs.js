// What the job was given: its CreateTrainingJob document and its plan, with secrets hidden.

import { get, ofJob } from "./api.js";
import { h, notice } from "./dom.js";

export function showInputs(place, job) {
  let isOver = false;
  get(ofJob(job.name, "inputs")).then(
    (found) => {
      if (isOver) return;
      if (found.plan) place.append(h("h2", {}, "Plan"), h("pre", { tabIndex: 0, class: "document" }, found.plan));
      place.append(h("h2", {}, "CreateTrainingJob document"), h("pre", { tabIndex: 0, class: "document" }, JSON.stringify(found.request, null, 2)));
    },
    (error) => notice(error.message),
  );
  return {
    close() {
      isOver = true;
    },
  };
}
