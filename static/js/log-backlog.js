// Output that comes faster than a page can draw it: gathered for a moment, and only those lines that
// the page would keep are passed on. A lone line passes at once.

const PASS_MS = 100;
// What took long to pass on is followed by a pause several times as long.
const REST = 3;
// Colours, and whatever else a program can switch on, must not be skipped.
const CONTROLS = /[\x1b\x80-\x9f]/;

export class Backlog {
  #most;
  #pass;
  #pieces = [];
  #timer = null;
  #wait = PASS_MS;
  #passedAt = -Infinity;

  /** `pass(text, skipped)` gets the text and how many lines before it were left out. */
  constructor(most, pass) {
    this.#most = most;
    this.#pass = pass;
  }

  add(text) {
    this.#pieces.push(text);
    if (performance.now() - this.#passedAt >= this.#wait) {
      this.flush();
    } else {
      this.#timer ??= setTimeout(() => this.flush(), this.#wait);
    }
  }

  flush() {
    this.#stop();
    if (this.#pieces.length === 0) {
      return;
    }
    const begun = performance.now();
    const text = this.#pieces.join("");
    this.#pieces = [];
    const cut = beginOfLast(text, this.#most);
    const skipped = text.slice(0, cut);
    if (cut === 0 || CONTROLS.test(skipped)) {
      this.#pass(text, 0);
    } else {
      this.#pass(text.slice(cut), skipped.split("\n").length - 1);
    }
    this.#passedAt = performance.now();
    this.#wait = Math.max(PASS_MS, (this.#passedAt - begun) * REST);
  }

  clear() {
    this.#stop();
    this.#pieces = [];
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Where the last `most` lines of the text begin. */
function beginOfLast(text, most) {
  let at = text.length;
  for (let count = 0; count <= most; count += 1) {
    at = text.lastIndexOf("\n", at - 1);
    if (at <= 0) {
      return 0;
    }
  }
  return at + 1;
}
