// All that the page asks of the server: documents, actions, and what changes.

import { retract } from "./dom.js";

export const AGAIN = 2000; // milliseconds until what failed is asked for again
const NO_ANSWER = "The console does not answer."; // which is taken back, for what is shown is asked for again

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }

  // Whether there would be no other answer if it were asked again.
  get isForGood() {
    return this.status >= 400 && this.status < 500;
  }
}

async function answered(request, otherwise) {
  const response = await request.catch(() => Promise.reject(new Error(otherwise)));
  retract(NO_ANSWER);
  const found = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Refused(response.status, found.error);
  return found;
}

export function address(path, values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const words = query.toString();
  return `api/${path}${words ? `?${words}` : ""}`;
}

// A request that a browser has given up, as when a network of the machine comes or goes, is made once more.
async function asked(path, values) {
  try {
    return await fetch(address(path, values));
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return fetch(address(path, values));
  }
}

export async function get(path, values) {
  return answered(asked(path, values), NO_ANSWER);
}

// A library, which a page can do without.
export async function library(path) {
  try {
    return await import(path);
  } catch {
    return import(`${path}?again`);
  }
}

export async function post(path, values) {
  return answered(fetch(address(path, values), { method: "POST" }), "The console does not answer; try it again once it does.");
}

export const ofJob = (name, part = "") => `jobs/${encodeURIComponent(name)}${part ? `/${part}` : ""}`;

// One stream of changes at a time: that of the page that is shown. It comes again by itself when the server is back.
export class Changes {
  constructor(job, listeners) {
    this.source = new EventSource(address("events", { job }));
    for (const [name, listener] of Object.entries(listeners)) {
      if (name === "open" || name === "away") continue;
      this.source.addEventListener(name, (event) => listener(JSON.parse(event.data)));
    }
    this.source.addEventListener("hello", () => listeners.open());
    this.source.addEventListener("error", () => {
      listeners.away();
      if (this.source.readyState === EventSource.CLOSED && !this.isOver) {
        this.timer = setTimeout(() => this.again(job, listeners), 2000);
      }
    });
  }

  again(job, listeners) {
    if (this.isOver) return;
    const next = new Changes(job, listeners);
    this.close = () => next.close();
  }

  close() {
    this.isOver = true;
    clearTimeout(this.timer);
    this.source.close();
  }
}
