// Log viewers of builds: follow the build while it runs, pause when the reader scrolls up, move on to
// a newer build, show an older one on request.

import { installPalette } from "./ansi-palette.js";
import { BuildFeed } from "./build-feed.js";
import { LogPane } from "./log-pane.js";

// "Step 2/5 : RUN make" of the engine's own builder, "#7 [2/5] RUN make" of BuildKit.
const STEP = /^(?:Step (\d+)\/(\d+) : |#\d+ \[(?:[\w.-]+ )?(\d+)\/(\d+)\] )(.*)\n/gm;
const LONGEST_STEP = 500;
// The agent's own step, which the Dockerfile of the user does not have.
const LABELS = "LABEL trailer.";
const viewers = new Map();

export function startBuildLogs() {
  installPalette();
  open(document);
  document.addEventListener("htmx:load", (event) => open(event.target));
  document.addEventListener("htmx:afterSettle", () => {
    closeGone();
    viewers.forEach((viewer) => viewer.buildsChanged());
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-show-build]");
    const viewer = viewers.values().next().value;
    if (link && viewer && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      viewer.choose(link);
    }
  });
  const retry = () => viewers.forEach((viewer) => viewer.retryNow());
  window.addEventListener("online", retry);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && retry());
}

function open(root) {
  for (const element of root.querySelectorAll('[data-log^="build:"]')) {
    if (!viewers.has(element)) {
      viewers.set(element, new BuildLog(element));
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

class BuildLog {
  #element;
  #pane;
  #feed = null;
  #tell = null;
  #begun = "";
  #at = 0;
  #labelsAt = Infinity;

  constructor(element) {
    this.#element = element;
    this.#pane = new LogPane(element);
    this.#read(element.dataset.log.slice("build:".length));
    this.#markRow();
  }

  close() {
    this.#feed?.stop();
  }

  retryNow() {
    this.#feed?.retryNow();
  }

  /** Shows the build of a row of the history; the address follows, for reloads and links. */
  choose(link) {
    const { showBuild, number, newest } = link.dataset;
    this.#element.toggleAttribute("data-newest-of", newest !== undefined);
    history.replaceState(null, "", newest === undefined ? `?build=${showBuild}` : location.pathname);
    this.#show(showBuild, number);
    this.#element.scrollIntoView({ block: "nearest" });
  }

  /** A viewer of the newest build moves on when a newer one begins. */
  buildsChanged() {
    const newest = document.querySelector("[data-show-build][data-newest]");
    if (newest && this.#element.hasAttribute("data-newest-of")) {
      this.#show(newest.dataset.showBuild, newest.dataset.number);
    }
    this.#readOn();
    this.#markRow();
  }

  /** The last lines may come after the end, from a host that could not send them in time. */
  #readOn() {
    const build = this.#element.dataset.log.slice("build:".length);
    const row = document.querySelector(`[data-show-build="${CSS.escape(build)}"]`);
    if (row && this.#feed.isOver && Number(row.dataset.logBytes) > this.#feed.offset) {
      this.#element.removeAttribute("data-complete");
      this.#feed = new BuildFeed(build, this.#feed.offset, this.#tell);
    }
  }

  #show(build, number) {
    if (this.#element.dataset.log === `build:${build}`) {
      return;
    }
    this.#element.dataset.log = `build:${build}`;
    this.#pane.part("number").textContent = number;
    const { download } = this.#pane.part("whole");
    this.#pane.leadToWhole(`/api/v1/builds/${build}/log/`, download.replace(/\d+(?=\.log$)/, number));
    this.#read(build);
    this.#markRow();
  }

  #read(build) {
    this.#feed?.stop();
    this.#element.removeAttribute("data-complete");
    this.#pane.clear();
    this.#begun = "";
    this.#labelsAt = Infinity;
    this.#step("");
    const encoder = new TextEncoder();
    this.#pane.say("connecting…");
    this.#tell = {
      text: (text) => {
        this.#pane.add(encoder.encode(text));
        this.#lookForStep(text);
      },
      state: (words) => this.#pane.say(words),
      complete: () => this.#complete(),
    };
    this.#feed = new BuildFeed(build, 0, this.#tell);
  }

  #complete() {
    this.#element.setAttribute("data-complete", "");
    if (this.#at) {
      const step = this.#at > this.#labelsAt ? this.#at - 1 : this.#at;
      document.dispatchEvent(new CustomEvent("trailer:step", { detail: { step } }));
    }
    this.#pane.say(this.#pane.isEmpty ? "complete, without output" : "complete");
  }

  /** In whole lines, of which one may have begun in an earlier piece. */
  #lookForStep(text) {
    const all = this.#begun + text;
    this.#begun = all.slice(all.lastIndexOf("\n") + 1).slice(0, LONGEST_STEP);
    // Most output has none, and looking at each of its lines would cost more than this.
    if (!all.includes("Step ") && !all.includes("#")) {
      return;
    }
    const steps = [...all.matchAll(STEP)];
    const labels = steps.find((step) => step[5].startsWith(LABELS));
    this.#labelsAt = labels ? Number(labels[1]) : this.#labelsAt;
    const last = steps.at(-1);
    if (last) {
      const [, number, of, kitNumber, kitOf, words] = last;
      this.#step(`Step ${number ?? kitNumber} of ${of ?? kitOf}: ${words}`, Number(number));
    }
  }

  /** What the build is at, told where its progress is shown. */
  #step(words, step) {
    const place = document.querySelector("[data-log-step]");
    if (place && this.#element.hasAttribute("data-newest-of")) {
      place.textContent = words;
      this.#at = step;
    }
  }

  #markRow() {
    for (const link of document.querySelectorAll("[data-show-build]")) {
      const shown = this.#element.dataset.log === `build:${link.dataset.showBuild}`;
      link.closest("tr").setAttribute("aria-current", String(shown));
    }
  }
}
