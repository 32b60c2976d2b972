// One viewer for the logs of builds and of workspaces: the lines in view, followed or held, searched
// and copied. Where the lines come from is its owner's business.

import { AnsiLines } from "./ansi.js";
import { LineSearch } from "./line-search.js";
import { LineStore } from "./line-store.js";
import { LineWindow } from "./line-window.js";
import { describeSize } from "./sizes.js";
import { toast } from "./toasts.js";

const MOST_COPIED = 20_000;
const NO_LEAD = (text) => ({ lead: "", text });

export class LogPane {
  #element;
  #store = new LineStore();
  #window;
  #search;
  #lead;
  #forgotten = 0;

  /** `lead(text)` parts what is shown before a line from the line; `withTimes()` says whether times count in a search. */
  constructor(element, { lead = NO_LEAD, withTimes = () => true } = {}) {
    this.#element = element;
    this.#lead = lead;
    const draw = (text) => this.#draw(text);
    this.#window = new LineWindow(this.part("text"), this.#store, { draw, changed: () => this.#shown() });
    this.#search = new LineSearch(this.part("search"), this.part("found"), this.#store, this.#window, withTimes);
    this.part("follow").addEventListener("click", () => this.#window.follow(!this.#window.following));
    this.part("copy").addEventListener("click", () => this.#copy());
    this.part("next").addEventListener("click", () => this.#search.step(1));
    this.part("previous-match").addEventListener("click", () => this.#search.step(-1));
  }

  get isEmpty() {
    return this.#store.end === this.#store.first;
  }

  /** Forgets everything and follows what comes. */
  clear() {
    this.#store.clear();
    this.#forgotten = this.#store.first;
    this.#search.clear();
    this.#window.redraw();
    this.#window.follow(true);
  }

  add(bytes) {
    this.#store.append(bytes);
    this.#window.update();
  }

  /** A line of our own among the others. */
  note(words) {
    this.#store.appendLine(`\x1b[36m── ${words} ──\x1b[0m`);
    this.#window.update();
  }

  redraw() {
    this.#window.redraw();
  }

  say(words) {
    this.part("state").textContent = words;
  }

  /** Where the whole log can be read; `name`, when it changes, is the file that a download makes. */
  leadToWhole(address, name = null) {
    for (const link of this.#element.querySelectorAll("a[data-log-whole]")) {
      link.href = address;
      link.download &&= name ?? link.download;
    }
  }

  part(name) {
    return this.#element.querySelector(`[data-log-${name}]`);
  }

  #draw(line) {
    const { lead, text } = this.#lead(line);
    const ansi = new AnsiLines();
    ansi.write(text);
    const runs = ansi.tail()?.runs ?? [];
    const nodes = runs.map((run) => (run.classes ? span(run.classes, run.text) : run.text));
    return lead ? [span("line-time", lead), ...nodes] : nodes;
  }

  #shown() {
    const { following, unseen } = this.#window;
    this.part("follow").setAttribute("aria-pressed", String(following));
    this.part("follow-words").textContent = following ? "Pause" : "Follow";
    this.part("unseen").textContent = unseen > 0 ? `${unseen.toLocaleString("en")} new` : "";
    const gone = this.#store.first - this.#forgotten;
    this.part("dropped").hidden = gone === 0;
    this.part("dropped-words").textContent =
      `${gone.toLocaleString("en")} earlier lines left this page, which keeps ${describeSize(this.#store.bytes)}.`;
    this.part("empty").hidden = !this.isEmpty;
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
      getSelection().selectAllChildren(this.part("text"));
      toast("The browser does not allow copying here. What is in view is selected: press Ctrl-C.", "error");
    }
  }
}

function span(classes, text) {
  const element = document.createElement("span");
  element.className = classes;
  element.textContent = text;
  return element;
}
