// Terminal output as lines of text with class names: colours are kept, a carriage return writes the
// line again, and everything else that a terminal would obey is left out. Pure: it knows no document,
// so nothing that a log says can become more than text.

import { StyleState } from "./ansi-style.js";

export const LONGEST_LINE = 16_384;
// More changes of colour within one line are not drawn: each would cost an element.
const MOST_RUNS = 512;
// A line of more colours than this loses them when it is written over, which costs time for each.
const MOST_RUNS_REWRITTEN = 32;
const LONGEST_PARAMETERS = 256;

// Neither controls, nor what changes the direction of text to make it read as something else.
const PLAIN = /[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+/y;
const PARAMETERS = /[\x20-\x3f]*/y;
// A newline ends a string too: one that its program never ended must not swallow the log.
const STRING_END = /[\x07\x18\x1a\x1b\x9c\n]/g;
const STRINGS = new Set(["P", "X", "]", "^", "_", "\x90", "\x98", "\x9d", "\x9e", "\x9f"]);
const HALF_CHARACTER = /\p{Surrogate}/u;
const HALF_CHARACTERS = /\p{Surrogate}/gu;

/** Lines are `{runs: [{text, classes}], cut}`; `cut` counts the characters beyond the longest line. */
export class AnsiLines {
  #finished = [];
  #read = this.#readText;
  #parameters = "";
  #style = new StyleState();
  #runs = [];
  #length = 0;
  #column = 0;
  #cut = 0;

  /** Takes the next piece of output, cut anywhere; returns the lines that it completed. */
  write(text) {
    this.#finished = [];
    let at = 0;
    while (at < text.length) {
      at = this.#read(text, at);
    }
    return this.#finished;
  }

  /** The line that has not ended yet, or null when there is nothing in it. */
  tail() {
    return this.#length > 0 || this.#cut > 0 ? this.#line() : null;
  }

  #line() {
    const runs = this.#runs.map(({ text, classes }) => ({ text: wellFormed(text), classes }));
    return { runs, cut: this.#cut };
  }

  #endLine() {
    this.#finished.push(this.#line());
    this.#runs = [];
    this.#length = 0;
    this.#column = 0;
    this.#cut = 0;
  }

  #readText(text, at) {
    PLAIN.lastIndex = at;
    const found = PLAIN.exec(text);
    if (found) {
      this.#put(found[0]);
      return PLAIN.lastIndex;
    }
    this.#control(text[at]);
    return at + 1;
  }

  #control(sign) {
    if (sign === "\n") {
      this.#endLine();
    } else if (sign === "\r") {
      this.#column = 0;
    } else if (sign === "\b") {
      this.#column = Math.max(0, this.#column - 1);
    } else if (sign === "\t") {
      this.#put(sign);
    } else if (sign === "\x1b") {
      this.#read = this.#readEscape;
    } else if (sign === "\x9b") {
      this.#beginSequence();
    } else if (STRINGS.has(sign)) {
      this.#read = this.#readString;
    } else if (sign > "\x9f") {
      this.#put("\ufffd");
    }
  }

  /** After an escape sign. What cannot follow it is read as text. */
  #readEscape(text, at) {
    const sign = text[at];
    if (sign === "[") {
      this.#beginSequence();
    } else if (STRINGS.has(sign)) {
      this.#read = this.#readString;
    } else if (sign >= " " && sign <= "/") {
      return at + 1;
    } else if (sign >= "0" && sign <= "~") {
      this.#read = this.#readText;
    } else if (sign !== "\x1b") {
      this.#read = this.#readText;
      return at;
    }
    return at + 1;
  }

  #beginSequence() {
    this.#parameters = "";
    this.#read = this.#readSequence;
  }

  #readSequence(text, at) {
    PARAMETERS.lastIndex = at;
    const [found] = PARAMETERS.exec(text);
    // Too long ones keep their first sign too many, by which they are known.
    this.#parameters += found.slice(0, LONGEST_PARAMETERS + 1 - this.#parameters.length);
    const end = at + found.length;
    if (end === text.length) {
      return end;
    }
    this.#read = this.#readText;
    if (text[end] >= "@" && text[end] <= "~") {
      this.#obey(text[end]);
      return end + 1;
    }
    return end;
  }

  #obey(final) {
    const given = this.#parameters;
    if (given.length > LONGEST_PARAMETERS) {
      return;
    }
    if (final === "m" && /^[0-9;:]*$/.test(given)) {
      this.#style.change(given);
    } else if (final === "K" && /^[012]?$/.test(given)) {
      this.#erase(given || "0");
    }
  }

  #readString(text, at) {
    STRING_END.lastIndex = at;
    const found = STRING_END.exec(text);
    if (!found) {
      return text.length;
    }
    // An escape sign begins the string's own end (ESC \) or something new: either is read the same.
    this.#read = found[0] === "\x1b" ? this.#readEscape : this.#readText;
    return found.index + (found[0] === "\n" ? 0 : 1);
  }

  #put(text) {
    const room = LONGEST_LINE - this.#column;
    if (text.length > room) {
      this.#cut += text.length - room;
      text = text.slice(0, room);
    }
    if (text === "") {
      return;
    }
    const after = this.#column + text.length;
    if (this.#column < this.#length && this.#runs.length > MOST_RUNS_REWRITTEN) {
      this.#runs = [{ text: lineText(this.#line()), classes: "" }];
    }
    const before = this.#column < this.#length ? part(this.#runs, 0, this.#column) : this.#runs;
    const rest = after < this.#length ? part(this.#runs, after, this.#length) : [];
    this.#runs = before;
    this.#append(text, this.#style.classes);
    rest.forEach((run) => this.#append(run.text, run.classes));
    this.#column = after;
    this.#length = Math.max(this.#length, after);
  }

  #append(text, classes) {
    const last = this.#runs.at(-1);
    if (last && (last.classes === classes || this.#runs.length >= MOST_RUNS)) {
      last.text += text;
    } else {
      this.#runs.push({ text, classes });
    }
  }

  /** To the end of the line (0), up to here (1) or all of it (2). */
  #erase(which) {
    if (which === "1") {
      const blank = Math.min(this.#column, this.#length);
      const rest = part(this.#runs, blank, this.#length);
      this.#runs = blank > 0 ? [{ text: " ".repeat(blank), classes: "" }, ...rest] : rest;
      return;
    }
    // The place to write at stays, so that a line erased as a whole is filled up with blanks.
    const kept = which === "0" ? part(this.#runs, 0, this.#column) : [];
    const blank = which === "2" ? this.#column : 0;
    this.#runs = blank > 0 ? [{ text: " ".repeat(blank), classes: "" }] : kept;
    this.#length = Math.min(this.#length, this.#column);
    this.#cut = 0;
  }
}

export function lineText(line) {
  return line.runs.map((run) => run.text).join("");
}

/** Characters `from` to `to` of a line. */
function part(runs, from, to) {
  const found = [];
  let at = 0;
  for (const { text, classes } of runs) {
    const piece = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (piece) {
      found.push({ text: piece, classes });
    }
    at += text.length;
    if (at >= to) {
      break;
    }
  }
  return found;
}

function wellFormed(text) {
  return HALF_CHARACTER.test(text) ? text.replace(HALF_CHARACTERS, "\ufffd") : text;
}
