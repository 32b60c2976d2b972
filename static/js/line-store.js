// Lines of a log, kept as the bytes they came as: a million of them cost little more than their text.
// Beyond its limits the store forgets its oldest lines, in pieces.

import { leftOn, NOTHING } from "./line-colours.js";

const MOST_LINES = 1_000_000;
// A million lines of usual length, each with the engine's time before it.
const MOST_BYTES = 100 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
// Of a longer line only its beginning is kept, and how much is missing.
const LONGEST_LINE = 15 * 1024;
const NEWLINE = 10;
const RETURN = 13;
const ESCAPE = 27;

export class LineStore {
  #pieces = [];
  #open = null;
  #tail = new Uint8Array(LONGEST_LINE);
  #tailLength = 0;
  #cut = 0;
  #colours = NOTHING;
  #decoder = new TextDecoder();
  #lines = 0;
  #bytes = 0;

  /** Number of the oldest line that is kept; counting never begins again. */
  first = 0;

  /** Number after the newest line. A line that has not ended yet counts. */
  get end() {
    return this.first + this.#lines + (this.#tailLength > 0 ? 1 : 0);
  }

  /** Number after the newest line that has ended. */
  get ended() {
    return this.first + this.#lines;
  }

  get bytes() {
    return this.#bytes;
  }

  clear() {
    this.first = this.end;
    this.#pieces = [];
    this.#open = null;
    this.#tailLength = this.#cut = this.#lines = this.#bytes = 0;
    this.#colours = NOTHING;
  }

  append(bytes) {
    const plain = !bytes.includes(ESCAPE);
    let at = 0;
    while (at < bytes.length) {
      if (plain && this.#tailLength === 0 && this.#colours.length === 0) {
        at = this.#takeWhole(bytes, at);
        if (at === bytes.length) {
          break;
        }
      }
      const found = bytes.indexOf(NEWLINE, at);
      const end = found < 0 ? bytes.length : found;
      this.#grow(bytes.subarray(at, end));
      if (found >= 0) {
        this.#endLine();
      }
      at = end + 1;
    }
    this.#forget();
  }

  appendLine(text) {
    this.append(new TextEncoder().encode(`${this.#tailLength > 0 ? "\n" : ""}${text}\n`));
  }

  /** The text of one line, or "" of one that is not kept. */
  line(number) {
    if (number === this.ended && this.#tailLength > 0) {
      return this.#decoder.decode(this.#tail.subarray(0, this.#tailLength));
    }
    const piece = this.#pieceOf(number);
    if (!piece) {
      return "";
    }
    const at = number - piece.first;
    const end = at + 1 < piece.count ? piece.starts[at + 1] : piece.length;
    return this.#decoder.decode(piece.bytes.subarray(piece.starts[at], end - 1));
  }

  /** The piece that holds this line, or else the next one: where it begins, where it ends, and its text. */
  textFrom(number) {
    const piece = this.#pieces.find(({ first, count }) => first + count > number);
    if (!piece) {
      return null;
    }
    const skip = Math.max(0, number - piece.first);
    const text = this.#decoder.decode(piece.bytes.subarray(piece.starts[skip], piece.length));
    return { first: piece.first + skip, end: piece.first + piece.count, text };
  }

  /** Short lines that end in these bytes and fit into the open piece, all at once; where the rest begins. */
  #takeWhole(bytes, at) {
    const piece = this.#open;
    if (!piece) {
      return at;
    }
    const limit = Math.min(bytes.length, at + PIECE_BYTES - piece.length);
    let line = at;
    for (let place = at; place < limit && place - line <= LONGEST_LINE; place += 1) {
      if (bytes[place] === NEWLINE) {
        piece.starts.push(piece.length + line - at);
        line = place + 1;
      }
    }
    const added = piece.starts.length - piece.count;
    piece.bytes.set(bytes.subarray(at, line), piece.length);
    piece.length += line - at;
    piece.count += added;
    this.#lines += added;
    this.#bytes += line - at;
    return line;
  }

  #grow(bytes) {
    if (this.#tailLength === 0 && bytes.length > 0) {
      this.#tail.set(this.#colours);
      this.#tailLength = this.#colours.length;
    }
    const room = LONGEST_LINE - this.#tailLength;
    if (bytes.length > room && this.#beginAgain(bytes)) {
      return;
    }
    const kept = bytes.subarray(0, room);
    this.#tail.set(kept, this.#tailLength);
    this.#tailLength += kept.length;
    this.#cut += bytes.length - kept.length;
  }

  /** A line that is written over and over again, as by a progress bar, is what was written last. */
  #beginAgain(bytes) {
    const end = bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length;
    const last = bytes.subarray(bytes.lastIndexOf(RETURN, end - 1) + 1, end);
    if (last.length === end || last.length > LONGEST_LINE) {
      return false;
    }
    this.#tail.set(last);
    this.#tailLength = last.length;
    this.#cut = 0;
    return true;
  }

  #endLine() {
    if (this.#cut > 0) {
      this.#sayCut();
    }
    const text = this.#tail.subarray(0, this.#tailLength);
    const length = text.length + 1;
    if (!this.#open || this.#open.length + length > PIECE_BYTES) {
      this.#begin();
    }
    const piece = this.#open;
    piece.starts.push(piece.length);
    piece.bytes.set(text, piece.length);
    piece.length += length;
    piece.bytes[piece.length - 1] = NEWLINE;
    piece.count += 1;
    this.#lines += 1;
    this.#bytes += length;
    this.#colours = text.length > 0 ? leftOn(text) : this.#colours;
    this.#tailLength = 0;
  }

  #sayCut() {
    const words = ` \x1b[0;33m[… ${this.#cut.toLocaleString("en")} more bytes in this line]\x1b[0m`;
    const mark = new TextEncoder().encode(words);
    this.#tailLength = Math.min(this.#tailLength, LONGEST_LINE - mark.length);
    this.#tail.set(mark, this.#tailLength);
    this.#tailLength += mark.length;
    this.#cut = 0;
  }

  /** A full piece changes no more, so its numbers are packed. */
  #begin() {
    if (this.#open) {
      this.#open.starts = Uint32Array.from(this.#open.starts);
    }
    this.#open = { first: this.ended, count: 0, length: 0, bytes: new Uint8Array(PIECE_BYTES), starts: [] };
    this.#pieces.push(this.#open);
  }

  #forget() {
    while (this.#pieces.length > 1 && (this.#lines > MOST_LINES || this.#bytes > MOST_BYTES)) {
      const oldest = this.#pieces.shift();
      this.#lines -= oldest.count;
      this.#bytes -= oldest.length;
      this.first += oldest.count;
    }
  }

  #pieceOf(number) {
    let low = 0;
    let high = this.#pieces.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const piece = this.#pieces[middle];
      if (number < piece.first) {
        high = middle - 1;
      } else if (number >= piece.first + piece.count) {
        low = middle + 1;
      } else {
        return piece;
      }
    }
    return null;
  }
}
