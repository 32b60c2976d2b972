// Search within the lines of a log that are on the page; found words are marked without touching them.

import { rangesIn } from "./text-ranges.js";

const MOST_MARKS = 2000;
const AFTER_LINES_MS = 400;
const MARK = "log-match";
const CURRENT = "log-current";

export class LogSearch {
  #input;
  #count;
  #body;
  #lines = [];
  #at = -1;
  #timer = null;

  constructor(viewer, body) {
    this.#input = viewer.querySelector("[data-log-search]");
    this.#count = viewer.querySelector("[data-log-found]");
    this.#body = body;
    this.#input.addEventListener("input", () => this.#begin());
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.#step(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape" && this.#input.value) {
        event.stopPropagation();
        this.clear();
      }
    });
  }

  clear() {
    this.#input.value = "";
    this.#begin();
  }

  /** New lines came, old ones may have gone. */
  linesChanged() {
    if (this.#query() && this.#timer === null) {
      this.#timer = setTimeout(() => {
        this.#timer = null;
        const line = this.#lines[this.#at];
        this.#find();
        this.#at = this.#lines.indexOf(line);
        this.#show(false);
      }, AFTER_LINES_MS);
    }
  }

  #query() {
    return this.#input.value.trim().toLowerCase();
  }

  #begin() {
    this.#find();
    // The newest line is what people look for in a log that grows.
    this.#at = this.#lines.length - 1;
    this.#show(true);
  }

  #step(way) {
    if (this.#lines.length > 0) {
      this.#at = (this.#at + way + this.#lines.length) % this.#lines.length;
      this.#show(true);
    }
  }

  #find() {
    const query = this.#query();
    this.#lines = query
      ? [...this.#body.children].filter((line) => line.textContent.toLowerCase().includes(query))
      : [];
  }

  #show(jump) {
    const query = this.#query();
    const found = this.#lines.length;
    const place = this.#at >= 0 ? `${this.#at + 1} of ${found}` : `${found} lines`;
    this.#count.textContent = query === "" ? "" : found > 0 ? place : "nothing found";
    this.#body.querySelector(".is-current")?.classList.remove("is-current");
    const line = this.#lines[this.#at];
    line?.classList.add("is-current");
    if (jump) {
      line?.scrollIntoView({ block: "center" });
    }
    if (globalThis.Highlight && CSS.highlights) {
      const ranges = this.#lines.slice(-MOST_MARKS).flatMap((each) => rangesIn(each, query));
      CSS.highlights.set(MARK, new Highlight(...ranges.slice(-MOST_MARKS)));
      CSS.highlights.set(CURRENT, new Highlight(...(line ? rangesIn(line, query) : [])));
    }
  }
}
