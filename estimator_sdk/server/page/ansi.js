// A line that a script printed, as text in spans: colours by ansi_up, and nothing that a screen would act on.

import { library } from "./api.js";
import { h } from "./dom.js";

const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;
let Painter = null;

export const ready = library("./vendor/ansi_up.js").then(({ AnsiUp }) => {
  // It makes markup of each piece of a text; ours takes the pieces instead, so that no markup is ever made.
  Painter = class extends AnsiUp {
    pieces = [];
    transform_to_html(piece) {
      this.pieces.push(piece);
      return "";
    }
    process_hyperlink(packet) {
      this.pieces.push({ text: packet.text });
      return "";
    }
  };
}).catch(() => console.warn("ansi_up is missing: colours are not shown; run scripts/setup"));

// The text with an escape for each character that a screen would act on.
export function plain(text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > at) nodes.push(text.slice(at, found.index));
    const code = found[0].codePointAt(0);
    nodes.push(h("span", { class: "escape" }, code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16)}`));
    at = found.index + 1;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

// Of a line that is drawn again and again, as a progress bar is, the newest state.
function newest(text) {
  const states = text.replace(/\r+$/, "").split("\r");
  return states[states.length - 1];
}

export function painted(line) {
  const text = newest(line);
  if (!text.includes("\x1b") || Painter === null) return plain(text);
  const painter = new Painter();
  try {
    painter.ansi_to_html(text);
  } catch {
    return plain(text);
  }
  return painter.pieces.flatMap((piece) => {
    const nodes = plain(piece.text);
    const classes = ["bold", "faint", "italic", "underline"].filter((name) => piece[name]);
    const style = {};
    for (const [key, property] of [["fg", "color"], ["bg", "backgroundColor"]]) {
      const colour = piece[key];
      if (!colour) continue;
      if (colour.class_name === "truecolor") style[property] = `rgb(${colour.rgb.map(Number).join(",")})`;
      else classes.push(`${colour.class_name}-${key}`);
    }
    return classes.length || Object.keys(style).length ? [h("span", { class: classes.join(" "), style }, nodes)] : nodes;
  });
}
