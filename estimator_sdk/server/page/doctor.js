// Why the training steps are slow: what the doctor says, and where the time of a step goes on each rank.

import { address, get, ofJob } from "./api.js";
import { h } from "./dom.js";

export function showDoctor(place, job) {
  let isOver = false;
  const words = h("pre", { class: "document doctor", tabIndex: 0 }, "Looking…");
  const shares = h("pre", { class: "wide shares", tabIndex: 0, role: "region", "aria-label": "The shares of each rank" });
  const picture = h("div", { class: "wide picture", tabIndex: 0, role: "region", "aria-label": "Where the time of a step goes" });
  place.append(words, shares, picture);
  async function look() {
    try {
      const found = await get(ofJob(job.name, "diagnosis"));
      if (isOver) return;
      // The words may be wrapped to any width, and the table under them may not.
      const [said, table] = found.words.split(/\n+(?=\s*rank\s+host\s)/);
      words.textContent = said;
      shares.textContent = table ?? "";
      const caption = "Where the time of a step goes, a bar for each rank; the table above has the shares.";
      const at = address(ofJob(job.name, "diagnosis/picture"));
      picture.replaceChildren(...(found.ranks.length ? [h("img", { src: at, alt: caption })] : []));
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
