// Elements, and times and sizes in words. What a job printed is only ever text: nothing here takes markup.

export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else if (key in element && typeof element[key] !== "object" && !key.includes("-")) element[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  if (value < 172800) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.round((value % 86400) / 3600)} h`;
}

export function bytes(value) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

const two = (number) => String(number).padStart(2, "0");

export function clock(time) {
  const at = new Date(time * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function date(time) {
  if (time === null || time === undefined) return "–";
  const at = new Date(time * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function badge(status) {
  const words = { InProgress: "running", Stopping: "stopping", Completed: "completed", Failed: "failed", Stopped: "stopped" };
  return h("span", { class: `badge ${status}` }, words[status] ?? status);
}

export function select(label, options, value, changed) {
  const chosen = h("select", { "aria-label": label, onchange: (event) => changed(event.target.value) });
  fill(chosen, options, value);
  return chosen;
}

export function fill(chosen, options, value) {
  chosen.replaceChildren(...options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
}

export function ask(question, word) {
  const dialog = document.getElementById("ask");
  document.getElementById("question").textContent = question;
  document.getElementById("confirm").textContent = word;
  dialog.showModal();
  return new Promise((resolve) => {
    const answered = new AbortController();
    const answer = (yes) => {
      answered.abort();
      resolve(yes);
    };
    // Not at its close, of which a browser tells later: the dialog may show the next question by then.
    dialog.addEventListener("submit", (event) => answer(event.submitter?.value === "yes"), answered);
    dialog.addEventListener("cancel", () => answer(false), answered);
  });
}

export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = text;
  place.hidden = !text;
}

// Take back what a notice says, unless it says something else by now.
export function retract(text) {
  if (document.getElementById("notice").textContent === text) notice("");
}
