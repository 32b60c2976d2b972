// Log viewers of builds: follow the build while it runs, pause when the reader scrolls up, move on to
// a newer build, show an older one on request.

import { installPalette } from "./ansi-palette.js";
import { AnsiLines, lineText } from "./ansi.js";
import { Backlog } from "./log-backlog.js";
import { LogFeed } from "./log-feed.js";
import { LogSearch } from "./log-search.js";
import { LogView, MOST_CHARACTERS, MOST_LINES } from "./log-view.js";
import { describeSize } from "./sizes.js";
import { toast } from "./toasts.js";

// "Step 2/5 : RUN make" of the engine's own builder, "#7 [2/5] RUN make" of BuildKit.
const STEP = /^(?:Step (\d+)\/(\d+) : |#\d+ \[(?:[\w.-]+ )?(\d+)\/(\d+)\] )(.*)/;
const viewers = new Map();

export function startLogs() {
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
      viewers.set(element, new Viewer(element));
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

class Viewer {
  #element;
  #view;
  #search;
  #feed = null;
  #tell = null;
  #backlog = null;
  #skipped = 0;
  #at = 0;

  constructor(element) {
    this.#element = element;
    const body = this.#part("text");
    this.#view = new LogView(body, () => this.#shown());
    this.#search = new LogSearch(element, body);
    this.#part("follow").addEventListener("click", () => this.#view.follow(!this.#view.following));
    this.#part("copy").addEventListener("click", () => this.#copy());
    this.#read(element.dataset.log.slice("build:".length), Number(element.dataset.logBytes));
    this.#markRow();
  }

  close() {
    this.#feed?.stop();
    this.#backlog?.clear();
  }

  retryNow() {
    this.#feed?.retryNow();
  }

  /** Shows the build of a row of the history; the address follows, for reloads and links. */
  choose(link) {
    const { showBuild, number, logBytes, newest } = link.dataset;
    this.#element.toggleAttribute("data-newest-of", newest !== undefined);
    history.replaceState(null, "", newest === undefined ? `?build=${showBuild}` : location.pathname);
    this.#show(showBuild, number, Number(logBytes));
    this.#element.scrollIntoView({ block: "nearest" });
  }

  /** A viewer of the newest build moves on when a newer one begins. */
  buildsChanged() {
    const newest = document.querySelector("[data-show-build][data-newest]");
    if (newest && this.#element.hasAttribute("data-newest-of")) {
      this.#show(newest.dataset.showBuild, newest.dataset.number, Number(newest.dataset.logBytes));
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
      this.#feed = new LogFeed(build, this.#feed.offset, this.#tell);
    }
  }

  #show(build, number, bytes) {
    if (this.#element.dataset.log === `build:${build}`) {
      return;
    }
    this.#element.dataset.log = `build:${build}`;
    this.#part("number").textContent = number;
    for (const link of this.#element.querySelectorAll("a[data-log-whole]")) {
      link.href = `/api/v1/builds/${build}/log/`;
      link.download &&= link.download.replace(/\d+(?=\.log$)/, number);
    }
    this.#search.clear();
    this.#read(build, bytes);
    this.#markRow();
  }

  #read(build, bytes) {
    this.#feed?.stop();
    this.#element.removeAttribute("data-complete");
    this.#view.clear();
    this.#step("");
    // No more is fetched of a long log than the page keeps.
    this.#skipped = Math.max(0, (bytes || 0) - MOST_CHARACTERS);
    const lines = new AnsiLines();
    this.#backlog?.clear();
    const backlog = new Backlog(MOST_LINES, (text, skipped) => {
      this.#view.dropped += skipped;
      this.#add(lines.write(text), lines.tail());
    });
    this.#backlog = backlog;
    let begun = this.#skipped === 0;
    let empty = true;
    this.#say("connecting…");
    this.#tell = {
      text: (text) => {
        // The middle of a line is no beginning.
        const whole = begun ? text : text.slice(text.indexOf("\n") + 1);
        begun = true;
        empty = false;
        backlog.add(whole);
      },
      state: (words) => this.#say(words),
      complete: () => {
        backlog.flush();
        this.#element.setAttribute("data-complete", "");
        if (this.#at) {
          document.dispatchEvent(new CustomEvent("trailer:step", { detail: { step: this.#at } }));
        }
        this.#say(empty ? "complete, without output" : "complete");
      },
    };
    this.#feed = new LogFeed(build, this.#skipped, this.#tell);
  }

  #add(lines, tail) {
    this.#view.add(lines, tail);
    for (let at = lines.length - 1; at >= 0; at -= 1) {
      const first = lines[at].runs[0]?.text;
      if (first && (first.startsWith("Step ") || first.startsWith("#")) && STEP.test(lineText(lines[at]))) {
        const [, number, of, kitNumber, kitOf, words] = STEP.exec(lineText(lines[at]));
        this.#step(`Step ${number ?? kitNumber} of ${of ?? kitOf}: ${words}`, Number(number));
        return;
      }
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

  #shown() {
    const button = this.#part("follow");
    const { following, unseen, dropped } = this.#view;
    button.setAttribute("aria-pressed", String(following));
    this.#part("unseen").textContent = unseen > 0 ? `${unseen.toLocaleString("en")} new` : "";
    const bar = this.#part("dropped");
    bar.hidden = dropped === 0 && this.#skipped === 0;
    const lines = `${dropped.toLocaleString("en")} earlier line${dropped === 1 ? "" : "s"}`;
    const start = `The first ${describeSize(this.#skipped)}`;
    const both = this.#skipped > 0 && dropped > 0 ? `${start} and ${lines}` : this.#skipped > 0 ? start : lines;
    bar.querySelector("span").textContent = `${both} left this page, to keep it quick.`;
    this.#search?.linesChanged();
  }

  #markRow() {
    for (const link of document.querySelectorAll("[data-show-build]")) {
      const shown = this.#element.dataset.log === `build:${link.dataset.showBuild}`;
      link.closest("tr").setAttribute("aria-current", String(shown));
    }
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.#view.text);
      toast("The log was copied.");
    } catch {
      getSelection().selectAllChildren(this.#part("text"));
      toast("The browser does not allow copying here. The text is selected: press Ctrl-C.", "error");
    }
  }

  #say(words) {
    this.#part("state").textContent = words;
  }

  #part(name) {
    return this.#element.querySelector(`[data-log-${name}]`);
  }
}
