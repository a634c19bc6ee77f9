// Why the training steps are slow: what the doctor says, and where the time of a step goes on each rank.

import { address, get, ofJob } from "./api.js";
import { h } from "./dom.js";

export function showDoctor(place, job) {
  let isOver = false;
  const words = h("pre", { class: "document doctor", tabIndex: 0 }, "Looking…");
  const picture = h("div", { class: "wide", tabIndex: 0, role: "region", "aria-label": "Where the time of a step goes" });
  place.append(picture, words);
  async function look() {
    try {
      const found = await get(ofJob(job.name, "diagnosis"));
      if (isOver) return;
      words.textContent = found.words;
      const shares = "Where the time of a step goes, a bar for each rank; the table below has the shares.";
      const at = address(ofJob(job.name, "diagnosis/picture"));
      picture.replaceChildren(...(found.ranks.length ? [h("img", { src: at, alt: shares })] : []));
    } catch (error) {
      if (!isOver) words.textContent = error.message;
    }
  }
  look();
  return {
    reload: look,
    close() {
      isOver = true;
    },
  };
}
