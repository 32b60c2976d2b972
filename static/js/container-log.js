// The logs of a workspace: followed or paused, searched, with or without times, of this container or
// the one before.

import { read } from "./api.js";
import { ContainerFeed } from "./container-feed.js";
import { LogPane } from "./log-pane.js";

// Colours that the line before left on stand in front of it.
const TIME = /^((?:\x1b\[[\d;:]*m)*)(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*Z ?/;
const KEPT_CHOICE = "trailer-log-times";
const viewers = new Map();

export function startContainerLogs() {
  open(document);
  document.addEventListener("htmx:load", (event) => open(event.target));
  document.addEventListener("htmx:afterSettle", closeGone);
  document.addEventListener("trailer:state", ({ detail }) => {
    for (const viewer of viewers.values()) {
      viewer.heard(detail);
    }
  });
  const retry = () => viewers.forEach((viewer) => viewer.retryNow());
  window.addEventListener("online", retry);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && retry());
}

function open(root) {
  for (const element of root.querySelectorAll('[data-log^="workspace:"]')) {
    if (!viewers.has(element)) {
      viewers.set(element, new ContainerLog(element));
    }
  }
}

function closeGone() {
  for (const [element, viewer] of viewers) {
    if (!element.isConnected) {
      viewer.close();
      viewers.delete(element);
    }
  }
}

class ContainerLog {
  #workspace;
  #pane;
  #feed = null;
  #container = "";
  #times = wantsTimes();
  #status = "";
  #turn = 0;

  constructor(element) {
    this.#workspace = element.dataset.log.slice("workspace:".length);
    this.#pane = new LogPane(element, { lead: (line) => this.#lead(line), withTimes: () => this.#times });
    this.#pane.part("which").addEventListener("change", () => this.#read());
    this.#pane.part("tail").addEventListener("change", () => this.#read());
    const times = this.#pane.part("times");
    times.checked = this.#times;
    times.addEventListener("change", () => {
      this.#times = times.checked;
      rememberTimes(times.checked);
      this.#pane.redraw();
    });
    this.#read();
  }

  close() {
    this.#turn += 1;
    this.#feed?.stop();
  }

  retryNow() {
    this.#feed?.retryNow();
  }

  /** A workspace that has just started has something to say. */
  heard({ resource, status }) {
    if (resource === `workspace:${this.#workspace}` && status !== this.#status) {
      this.#status = status;
      this.retryNow();
    }
  }

  #read() {
    this.#turn += 1;
    this.#feed?.stop();
    this.#feed = null;
    this.#container = "";
    this.#pane.clear();
    const previous = this.#pane.part("which").value === "previous";
    const tail = this.#pane.part("tail").value;
    const address = (lines) => `/api/v1/workspaces/${this.#workspace}/logs/?tail=${lines}${previous ? "&previous=1" : ""}`;
    this.#pane.leadToWhole(address("all"));
    if (previous) {
      this.#readOnce(address(tail));
      return;
    }
    this.#pane.say("connecting…");
    this.#feed = new ContainerFeed(this.#workspace, tail, {
      bytes: (bytes) => this.#pane.add(bytes),
      container: (id) => this.#changed(id),
      missed: () => this.#pane.note("some lines were missed while the connection was lost"),
      state: (words) => this.#pane.say(words),
    });
  }

  async #readOnce(path) {
    const turn = this.#turn;
    this.#pane.say("reading the previous container…");
    let words;
    try {
      const answer = await read(`${path}&timestamps=1`);
      for await (const bytes of answer.body) {
        // Another choice was made meanwhile: leaving the loop ends the stream.
        if (turn !== this.#turn) {
          return;
        }
        this.#pane.add(bytes);
      }
      words = this.#pane.isEmpty ? "The previous container wrote nothing." : "complete";
    } catch (error) {
      words = error.message;
    }
    if (turn === this.#turn) {
      this.#pane.say(words);
    }
  }

  #changed(id) {
    if (this.#container && this.#container !== id) {
      this.#pane.note(`the container was replaced; from here on it is ${id.slice(0, 12)}`);
    }
    this.#container = id;
  }

  #lead(line) {
    const time = TIME.exec(line);
    if (!time) {
      return { lead: "", text: line };
    }
    const [all, colours, day, clock] = time;
    return { lead: this.#times ? `${day} ${clock}  ` : "", text: colours + line.slice(all.length) };
  }
}

function wantsTimes() {
  try {
    return localStorage.getItem(KEPT_CHOICE) !== "off";
  } catch {
    return true;
  }
}

function rememberTimes(on) {
  try {
    localStorage.setItem(KEPT_CHOICE, on ? "on" : "off");
  } catch {
    // Without storage the choice lasts for this page.
  }
}
