// The lines of a store that are in view, and only those: however many there are, the page holds the
// elements of one screen. A short log is held whole, for selecting and for the browser's own search.

const ROW_PX = 17;
const BEYOND = 12;
const NEAR_END_PX = 24;
const SHORT_LOG = 1000;
// Nobody reads faster, and painting a flood with every frame would take a core from everything else.
const PACE_MS = 100;

export class LineWindow {
  #body;
  #space;
  #rows;
  #store;
  #draw;
  #changed;
  #shown = new Map();
  #following = true;
  #seen = 0;
  #first = 0;
  #top = 0;
  #frame = null;
  #timer = null;
  #drawnAt = -Infinity;
  #unfinished = null;

  /** `draw(text)` makes the nodes of one line; `changed` hears of every new look. */
  constructor(body, store, { draw, changed }) {
    this.#body = body;
    this.#store = store;
    this.#draw = draw;
    this.#changed = changed;
    this.#space = document.createElement("div");
    this.#space.className = "line-space";
    this.#rows = document.createElement("div");
    this.#rows.className = "line-rows";
    this.#space.append(this.#rows);
    body.replaceChildren(this.#space);
    body.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#soon()).observe(body);
  }

  get following() {
    return this.#following;
  }

  /** Lines that came while the reader looked at older ones. */
  get unseen() {
    return this.#following ? 0 : Math.max(0, this.#store.end - this.#seen);
  }

  /** The elements in view, with their numbers. */
  get rows() {
    return this.#shown;
  }

  follow(on) {
    this.#following = on;
    this.#seen = this.#store.end;
    this.#soon();
  }

  /** Something in the store changed; many changes make one look, and a flood of them ten a second. */
  update() {
    const pause = this.#drawnAt + PACE_MS - performance.now();
    if (pause <= 0) {
      this.#soon();
    } else {
      this.#timer ??= setTimeout(() => this.#soon(), pause);
    }
  }

  /** Draws every line in view anew, as when timestamps are shown or hidden. */
  redraw() {
    this.#shown.clear();
    this.#rows.replaceChildren();
    this.#soon();
  }

  /** Brings a line to the middle of the view. */
  show(number) {
    this.#following = false;
    this.#seen = this.#store.end;
    this.#body.scrollTop = (number - this.#store.first) * ROW_PX - this.#body.clientHeight / 2;
    this.#top = this.#body.scrollTop;
    this.#render();
  }

  /** What the reader does is answered with the next frame. */
  #soon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#render();
    });
  }

  #render() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#drawnAt = performance.now();
    const { first, end } = this.#store;
    const forgotten = first - this.#first;
    this.#first = first;
    this.#space.style.height = `${(end - first) * ROW_PX}px`;
    if (this.#following) {
      this.#body.scrollTop = this.#body.scrollHeight;
    } else if (forgotten > 0) {
      // What somebody reads stays under their eyes while older lines go.
      this.#body.scrollTop -= forgotten * ROW_PX;
    }
    this.#top = this.#body.scrollTop;
    if (end - first <= SHORT_LOG) {
      this.#fill(first, end);
    } else {
      const from = Math.max(first, first + Math.floor(this.#top / ROW_PX) - BEYOND);
      this.#fill(from, Math.min(end, from + Math.ceil(this.#body.clientHeight / ROW_PX) + 2 * BEYOND));
    }
    if (this.#following) {
      this.#body.scrollTop = this.#body.scrollHeight;
    }
    this.#top = this.#body.scrollTop;
    this.#changed();
  }

  #fill(from, to) {
    for (const [number, row] of this.#shown) {
      if (number < from || number >= to) {
        row.remove();
        this.#shown.delete(number);
      }
    }
    this.#drawUnfinished();
    let place = this.#rows.firstChild;
    for (let number = from; number < to; number += 1) {
      let row = this.#shown.get(number);
      if (row) {
        place = row.nextSibling;
        continue;
      }
      row = document.createElement("div");
      row.className = "line";
      row.dataset.line = number;
      row.append(...this.#nodes(number));
      this.#rows.insertBefore(row, place);
      this.#shown.set(number, row);
    }
    this.#rows.style.transform = `translateY(${(from - this.#store.first) * ROW_PX}px)`;
  }

  /** What is selected or read aloud has the newline that the log has. */
  #nodes(number) {
    const nodes = this.#draw(this.#store.line(number));
    return number < this.#store.ended ? [...nodes, "\n"] : nodes;
  }

  /** A line that had not ended when it was drawn looks different now. */
  #drawUnfinished() {
    this.#shown.get(this.#unfinished)?.replaceChildren(...this.#nodes(this.#unfinished));
    this.#unfinished = this.#store.end > this.#store.ended ? this.#store.ended : null;
  }

  /**
   * Only a way up or down is the reader's wish: lines that arrive move the end away by themselves,
   * and being led to the end is told late, perhaps after the reader has asked to stay.
   */
  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#body;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    const upwards = scrollTop < this.#top - 1;
    const downwards = scrollTop > this.#top + 1;
    this.#top = scrollTop;
    if (atEnd && downwards && !this.#following) {
      this.follow(true);
    } else if (upwards && !atEnd && this.#following) {
      this.follow(false);
    }
    // Being led to the end was drawn already.
    if (upwards || downwards) {
      this.#soon();
    }
  }
}
