// The logs of a workspace: followed or paused, searched, with or without times, of this container or
// the one before.

import { read } from "./api.js";
import { AnsiLines } from "./ansi.js";
import { ContainerFeed } from "./container-feed.js";
import { LineSearch } from "./line-search.js";
import { LineStore } from "./line-store.js";
import { LineWindow } from "./line-window.js";
import { describeSize } from "./sizes.js";
import { toast } from "./toasts.js";

const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*Z ?/;
const MOST_COPIED = 20_000;
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

export class ContainerLog {
  #element;
  #workspace;
  #store = new LineStore();
  #window;
  #search;
  #feed = null;
  #container = "";
  #times = wantsTimes();
  #status = "";
  #forgotten = 0;

  constructor(element) {
    this.#element = element;
    this.#workspace = element.dataset.log.slice("workspace:".length);
    const draw = (text) => this.#draw(text);
    this.#window = new LineWindow(this.#part("text"), this.#store, { draw, changed: () => this.#shown() });
    this.#search = new LineSearch(
      this.#part("search"), this.#part("found"), this.#store, this.#window, () => this.#times,
    );
    this.#listen();
    this.#read();
  }

  close() {
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

  #listen() {
    this.#part("follow").addEventListener("click", () => this.#window.follow(!this.#window.following));
    this.#part("copy").addEventListener("click", () => this.#copy());
    this.#part("next").addEventListener("click", () => this.#search.step(1));
    this.#part("previous-match").addEventListener("click", () => this.#search.step(-1));
    this.#part("which").addEventListener("change", () => this.#read());
    this.#part("tail").addEventListener("change", () => this.#read());
    const times = this.#part("times");
    times.checked = this.#times;
    times.addEventListener("change", () => {
      this.#times = times.checked;
      rememberTimes(times.checked);
      this.#window.redraw();
    });
  }

  #read() {
    this.#feed?.stop();
    this.#feed = null;
    this.#store.clear();
    this.#forgotten = this.#store.first;
    this.#container = "";
    this.#search.clear();
    this.#window.redraw();
    this.#window.follow(true);
    const previous = this.#part("which").value === "previous";
    const tail = this.#part("tail").value;
    const whole = `/api/v1/workspaces/${this.#workspace}/logs/?tail=${tail}${previous ? "&previous=1" : ""}`;
    this.#part("whole").href = whole;
    if (previous) {
      this.#readOnce(whole);
      return;
    }
    this.#say("connecting…");
    this.#feed = new ContainerFeed(this.#workspace, tail, {
      bytes: (bytes) => {
        this.#store.append(bytes);
        this.#window.update();
      },
      container: (id) => this.#changed(id),
      missed: () => this.#note("some lines were missed while the connection was lost"),
      state: (words) => this.#say(words),
    });
  }

  async #readOnce(path) {
    this.#say("reading the previous container…");
    try {
      const answer = await read(`${path}&timestamps=1`);
      for await (const bytes of answer.body) {
        this.#store.append(bytes);
        this.#window.update();
      }
      this.#say(this.#store.end > this.#store.first ? "complete" : "The previous container wrote nothing.");
    } catch (error) {
      this.#say(error.message);
    }
  }

  #changed(id) {
    if (this.#container && this.#container !== id) {
      this.#note(`the container was replaced; from here on it is ${id.slice(0, 12)}`);
    }
    this.#container = id;
  }

  /** A line of our own among the container's. */
  #note(words) {
    this.#store.appendLine(`\x1b[36m── ${words} ──\x1b[0m`);
    this.#window.update();
  }

  #draw(text) {
    const time = TIME.exec(text);
    const ansi = new AnsiLines();
    const [line] = ansi.write(`${time ? text.slice(time[0].length) : text}\n`);
    const nodes = line.runs.map((run) => (run.classes ? span(run.classes, run.text) : run.text));
    if (line.cut > 0) {
      nodes.push(span("log-cut", ` [… ${line.cut.toLocaleString("en")} more characters]`));
    }
    if (time && this.#times) {
      nodes.unshift(span("line-time", `${time[1]} ${time[2]}  `));
    }
    return nodes;
  }

  #shown() {
    const { following, unseen } = this.#window;
    const button = this.#part("follow");
    button.setAttribute("aria-pressed", String(following));
    this.#part("follow-words").textContent = following ? "Pause" : "Follow";
    this.#part("unseen").textContent = unseen > 0 ? `${unseen.toLocaleString("en")} new` : "";
    const gone = this.#store.first - this.#forgotten;
    const bar = this.#part("dropped");
    bar.hidden = gone === 0;
    bar.textContent = `${gone.toLocaleString("en")} earlier lines left this page, which keeps ${describeSize(this.#store.bytes)}. Download the log to read them.`;
    this.#part("empty").hidden = this.#store.end > this.#store.first;
    this.#search?.linesChanged();
  }

  async #copy() {
    const { first, end } = this.#store;
    const from = Math.max(first, end - MOST_COPIED);
    const lines = [];
    for (let number = from; number < end; number += 1) {
      lines.push(this.#draw(this.#store.line(number)).map((node) => node.textContent ?? node).join(""));
    }
    try {
      await navigator.clipboard.writeText(`${lines.join("\n")}\n`);
      toast(from > first ? `The last ${MOST_COPIED.toLocaleString("en")} lines were copied.` : "The log was copied.");
    } catch {
      getSelection().selectAllChildren(this.#part("text"));
      toast("The browser does not allow copying here. What is in view is selected: press Ctrl-C.", "error");
    }
  }

  #say(words) {
    this.#part("state").textContent = words;
  }

  #part(name) {
    return this.#element.querySelector(`[data-log-${name}]`);
  }
}

function span(classes, text) {
  const element = document.createElement("span");
  element.className = classes;
  element.textContent = text;
  return element;
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
