// Search through every line of a store, a piece at a time so that the page stays usable, and through
// those that come later.

import { rangesIn } from "./text-ranges.js";

const SLICE_MS = 12;
const MOST_FOUND = 200_000;
const ESCAPES = /\x1b\[[0-?]*[ -/]*[@-~]/g;
const TIMES = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ?/gm;

export class LineSearch {
  #input;
  #count;
  #store;
  #window;
  #found = [];
  #at = -1;
  #next = 0;
  #query = "";
  #timer = null;
  #withTimes = () => true;

  constructor(input, count, store, window, withTimes) {
    this.#input = input;
    this.#count = count;
    this.#store = store;
    this.#window = window;
    this.#withTimes = withTimes;
    input.addEventListener("input", () => this.#begin());
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.step(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape" && input.value) {
        event.stopPropagation();
        this.clear();
      }
    });
  }

  clear() {
    this.#input.value = "";
    this.#begin();
  }

  /** New lines came, or old ones went. */
  linesChanged() {
    if (this.#query && this.#timer === null && this.#next < this.#store.ended) {
      this.#timer = setTimeout(() => this.#look(false), 200);
    }
    this.#mark();
  }

  step(way) {
    this.#dropForgotten();
    if (this.#found.length > 0) {
      this.#at = (this.#at + way + this.#found.length) % this.#found.length;
      this.#window.show(this.#found[this.#at]);
      this.#say();
    }
  }

  #begin() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#query = this.#input.value.trim().toLowerCase();
    this.#found = [];
    this.#at = -1;
    this.#next = this.#store.first;
    if (this.#query) {
      this.#look(true);
    } else {
      this.#say();
    }
    this.#mark();
  }

  /** `jump`: to the newest line, which is what people look for in a log that grows. */
  #look(jump) {
    this.#timer = null;
    const until = performance.now() + SLICE_MS;
    while (this.#next < this.#store.ended && performance.now() < until) {
      this.#lookAt(this.#store.textFrom(this.#next));
    }
    if (this.#next < this.#store.ended) {
      this.#say();
      this.#timer = setTimeout(() => this.#look(jump), 0);
    } else if (jump && this.#found.length > 0) {
      this.#at = this.#found.length - 1;
      this.#window.show(this.#found[this.#at]);
      this.#say();
    } else {
      this.#say();
    }
  }

  #lookAt({ first, end, text }) {
    const plain = this.#plain(text);
    let line = first;
    let from = 0;
    for (let at = plain.indexOf(this.#query); at >= 0; at = plain.indexOf(this.#query, from)) {
      for (let newline = plain.indexOf("\n", from); newline >= 0 && newline < at; newline = plain.indexOf("\n", from)) {
        line += 1;
        from = newline + 1;
      }
      this.#found.push(line);
      const newline = plain.indexOf("\n", at);
      line += 1;
      from = newline < 0 ? plain.length : newline + 1;
    }
    if (this.#found.length > MOST_FOUND) {
      this.#found.splice(0, this.#found.length - MOST_FOUND);
    }
    this.#next = end;
  }

  #plain(text) {
    const bare = text.includes("\x1b") ? text.replace(ESCAPES, "") : text;
    return (this.#withTimes() ? bare : bare.replace(TIMES, "")).toLowerCase();
  }

  #dropForgotten() {
    const gone = this.#found.findIndex((line) => line >= this.#store.first);
    if (gone !== 0) {
      this.#found.splice(0, gone < 0 ? this.#found.length : gone);
      this.#at = Math.max(0, this.#at - Math.max(0, gone));
    }
  }

  #say() {
    const found = this.#found.length.toLocaleString("en");
    const place = this.#at >= 0 ? `${(this.#at + 1).toLocaleString("en")} of ${found}` : `${found} ${this.#found.length === 1 ? "line" : "lines"}`;
    const searching = this.#next < this.#store.ended;
    this.#count.textContent = !this.#query
      ? ""
      : this.#found.length > 0
        ? place
        : searching ? "searching…" : "nothing found";
  }

  /** Marks the words in view, without touching the lines. */
  #mark() {
    const current = this.#found[this.#at];
    for (const [number, row] of this.#window.rows) {
      row.classList.toggle("is-current", this.#query !== "" && number === current);
    }
    if (globalThis.Highlight && CSS.highlights) {
      const rows = this.#query ? [...this.#window.rows.values()] : [];
      CSS.highlights.set("log-match", new Highlight(...rows.flatMap((row) => rangesIn(row, this.#query))));
    }
  }
}
