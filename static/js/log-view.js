// Lines of a log as elements: only text and spans with known classes, a bounded number of them, and
// no more work per moment than leaves the page usable.

export const MOST_LINES = 5000;
export const MOST_CHARACTERS = 2_000_000;
const FLUSH_MS = 40;
// A flush that took long is followed by a pause several times as long.
const REST = 3;
const NEAR_END = 24;
// A page that is filled anew again and again is read by nobody: so many lines are enough then.
const FLOOD_LINES = 1000;
const FLOOD_MS = 2000;

export class LogView {
  #body;
  #changed;
  #following = true;
  #sizes = [];
  #characters = 0;
  #pending = [];
  #pendingCharacters = 0;
  #tail = null;
  #tailShown = null;
  #timer = null;
  #cost = 0;
  #top = 0;
  #anewAt = -Infinity;

  /** Lines that left the page, or never came onto it. */
  dropped = 0;
  /** Lines that came while the reader looked at older ones. */
  unseen = 0;

  /** `changed` is called whenever lines, or the way they are followed, have changed. */
  constructor(body, changed) {
    this.#body = body;
    this.#changed = changed;
    body.addEventListener("scroll", () => this.#scrolled(), { passive: true });
  }

  get following() {
    return this.#following;
  }

  get text() {
    return this.#body.textContent;
  }

  clear() {
    this.#body.replaceChildren();
    this.#sizes = [];
    this.#pending = [];
    this.#characters = this.#pendingCharacters = this.#top = 0;
    this.#tail = this.#tailShown = null;
    this.dropped = this.unseen = 0;
    this.follow(true);
  }

  /** `tail` is the line that has not ended yet, or null. */
  add(lines, tail) {
    for (const line of lines) {
      const size = sizeOf(line);
      this.#pending.push({ line, size });
      this.#pendingCharacters += size;
    }
    this.#dropPending();
    this.#tail = tail;
    this.#timer ??= setTimeout(() => this.#flush(), Math.max(FLUSH_MS, this.#cost * REST));
  }

  follow(on) {
    this.#following = on;
    if (on) {
      this.#draw();
      this.unseen = 0;
      this.#toEnd();
    }
    this.#changed();
  }

  #flush() {
    this.#timer = null;
    const begun = performance.now();
    this.#draw();
    if (this.#following) {
      this.#toEnd();
    }
    // Reading the height makes the browser lay the lines out now, so that their cost is known.
    this.#cost = performance.now() - begun;
    this.#changed();
  }

  #draw() {
    let lines = this.#takePending();
    this.#tailShown?.remove();
    // More than the page keeps: all that is there goes at once, not line by line.
    const anew = this.#following && lines.length >= MOST_LINES;
    if (anew) {
      this.dropped += this.#sizes.length;
      this.#sizes = [];
      this.#characters = 0;
      lines = this.#ofFlood(lines);
    }
    const fragment = document.createDocumentFragment();
    for (const { line, size } of lines) {
      fragment.append(drawLine(line));
      this.#sizes.push(size);
      this.#characters += size;
    }
    this.#tailShown = this.#tail && drawLine(this.#tail, "");
    if (this.#tailShown) {
      fragment.append(this.#tailShown);
    }
    if (anew) {
      this.#body.replaceChildren(fragment);
    } else {
      this.#body.append(fragment);
    }
    if (this.#following) {
      this.#dropOld();
    } else {
      this.unseen += lines.length;
    }
  }

  #ofFlood(lines) {
    const now = performance.now();
    const isFlood = now - this.#anewAt < FLOOD_MS;
    this.#anewAt = now;
    if (!isFlood) {
      return lines;
    }
    this.dropped += lines.length - FLOOD_LINES;
    return lines.slice(-FLOOD_LINES);
  }

  /** What somebody reads stays under their eyes: a full page then takes no more lines. */
  #takePending() {
    const room = MOST_LINES - this.#sizes.length;
    const count = this.#following || this.#pending.length <= room ? this.#pending.length : Math.max(0, room);
    const lines = this.#pending.splice(0, count);
    lines.forEach(({ size }) => {
      this.#pendingCharacters -= size;
    });
    return lines;
  }

  #dropPending() {
    let count = Math.max(0, this.#pending.length - MOST_LINES);
    let characters = this.#pendingCharacters;
    for (let at = 0; at < this.#pending.length - 1 && (at < count || characters > MOST_CHARACTERS); at += 1) {
      characters -= this.#pending[at].size;
      count = Math.max(count, at + 1);
    }
    if (count > 0) {
      this.#pending.splice(0, count);
      this.#pendingCharacters = characters;
      this.dropped += count;
    }
  }

  #dropOld() {
    let count = 0;
    while (
      this.#sizes.length - count > MOST_LINES ||
      (this.#characters > MOST_CHARACTERS && count < this.#sizes.length - 1)
    ) {
      this.#characters -= this.#sizes[count];
      count += 1;
    }
    if (count === this.#sizes.length) {
      this.#body.replaceChildren(...(this.#tailShown ? [this.#tailShown] : []));
    } else {
      for (let at = 0; at < count; at += 1) {
        this.#body.firstChild.remove();
      }
    }
    this.#sizes.splice(0, count);
    this.dropped += count;
  }

  #toEnd() {
    this.#body.scrollTop = this.#body.scrollHeight;
    this.#top = this.#body.scrollTop;
  }

  /**
   * Only a way up or down is the reader's wish: lines that arrive move the end away by themselves,
   * and being led to the end is told late, perhaps after the reader has asked to stay.
   */
  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#body;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    const upwards = scrollTop < this.#top - 1;
    const downwards = scrollTop > this.#top + 1;
    this.#top = scrollTop;
    if (atEnd && downwards && !this.#following) {
      this.follow(true);
    } else if (upwards && !atEnd && this.#following) {
      this.follow(false);
    }
  }
}

function drawLine(line, end = "\n") {
  const element = document.createElement("div");
  element.className = "log-line";
  const [only] = line.runs;
  if (line.runs.length === 1 && !only.classes && line.cut === 0) {
    // As good as always; one piece of text costs half of two.
    element.textContent = only.text + end;
    return element;
  }
  for (const { text, classes } of line.runs) {
    element.append(classes ? span(classes, text) : text);
  }
  if (line.cut > 0) {
    element.append(span("log-cut", ` [… ${line.cut.toLocaleString("en")} more characters in this line]`));
  }
  element.append(end);
  return element;
}

function span(classes, text) {
  const element = document.createElement("span");
  element.className = classes;
  element.textContent = text;
  return element;
}

function sizeOf(line) {
  return line.runs.reduce((sum, run) => sum + run.text.length, 1);
}
