// Colours and weights of terminal output (SGR) as class names; true colours become the nearest of 256.

const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const ENDED = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };
const MOST_CHANGES = 32;
const LEVELS = [0, 95, 135, 175, 215, 255];

export class StyleState {
  /** Class names of the present style, joined; empty for plain text. */
  classes = "";
  #set = new Set();
  #front = null;
  #back = null;

  /** `parameters`: digits, semicolons and colons between CSI and `m`. */
  change(parameters) {
    // A colon joins the parts of one change: 38:2::255:0:0.
    const changes = parameters.split(";", MOST_CHANGES).map((text) => text.split(":"));
    while (changes.length > 0) {
      const [code, ...joined] = changes.shift();
      this.#apply(Number(code), joined, changes);
    }
    this.classes = this.#names().join(" ");
  }

  #apply(code, joined, following) {
    if (code === 38 || code === 48) {
      const colour = joined.length > 0 ? joinedColour(joined) : separateColour(following);
      if (colour !== null) {
        this.#paint(code === 38, colour);
      }
    } else if (code === 0) {
      this.#set.clear();
      this.#front = this.#back = null;
    } else if (code === 4 && joined[0] === "0") {
      this.#set.delete("underline");
    } else if (code in FLAGS) {
      this.#set.add(FLAGS[code]);
    } else if (code in ENDED) {
      ENDED[code].forEach((name) => this.#set.delete(name));
    } else if (code === 39 || code === 49) {
      this.#paint(code === 39, null);
    } else {
      this.#named(code);
    }
  }

  #named(code) {
    const [tens, ones] = [Math.floor(code / 10), code % 10];
    if (ones < 8 && (tens === 3 || tens === 4)) {
      this.#paint(tens === 3, ones);
    } else if (ones < 8 && (tens === 9 || tens === 10)) {
      this.#paint(tens === 9, ones + 8);
    }
  }

  #paint(front, colour) {
    if (front) {
      this.#front = colour;
    } else {
      this.#back = colour;
    }
  }

  #names() {
    const names = [...this.#set].filter((name) => name !== "inverse").map((name) => `ansi-${name}`);
    let [front, back] = [this.#front, this.#back];
    if (this.#set.has("inverse")) {
      [front, back] = [back ?? "ground", front ?? "ink"];
    }
    if (front !== null) {
      names.push(`ansi-fg-${front}`);
    }
    if (back !== null) {
      names.push("ansi-on", `ansi-bg-${back}`);
    }
    return names.sort();
  }
}

/** The colour of a number of the palette, from 16 on; the first 16 are the theme's. */
export function paletteColour(number) {
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return [grey, grey, grey];
  }
  const cube = number - 16;
  return [LEVELS[Math.floor(cube / 36)], LEVELS[Math.floor(cube / 6) % 6], LEVELS[cube % 6]];
}

function joinedColour([kind, ...numbers]) {
  if (kind === "5") {
    return ofPalette(numbers[0]);
  }
  // With or without the name of a colour space in front.
  return kind === "2" ? nearest(numbers.length > 3 ? numbers.slice(1, 4) : numbers) : null;
}

function separateColour(following) {
  const kind = following.shift()?.[0];
  if (kind === "5") {
    return ofPalette(following.shift()?.[0]);
  }
  return kind === "2" ? nearest(following.splice(0, 3).map(([text]) => text)) : null;
}

function ofPalette(text) {
  const number = Number(text || 0);
  return Number.isInteger(number) && number < 256 ? number : null;
}

function nearest(texts) {
  const wanted = texts.map((text) => Number(text || 0));
  if (wanted.length < 3 || wanted.some((value) => !(value < 256))) {
    return null;
  }
  const steps = wanted.map((value) => closestLevel(value));
  const inCube = 16 + 36 * steps[0] + 6 * steps[1] + steps[2];
  const mean = (wanted[0] + wanted[1] + wanted[2]) / 3;
  const inGrey = 232 + Math.min(23, Math.max(0, Math.round((mean - 8) / 10)));
  return distance(inGrey, wanted) < distance(inCube, wanted) ? inGrey : inCube;
}

function closestLevel(value) {
  const off = LEVELS.map((level) => Math.abs(level - value));
  return off.indexOf(Math.min(...off));
}

function distance(number, wanted) {
  return paletteColour(number).reduce((sum, value, at) => sum + (value - wanted[at]) ** 2, 0);
}
