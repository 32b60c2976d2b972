// Lines of a container's output, kept as the bytes they came as: a million of them cost little more
// than their text. Beyond its limits the store forgets its oldest lines, in pieces.

export const MOST_LINES = 1_000_000;
export const MOST_BYTES = 64 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
// Of a longer line only its beginning is kept.
const LONGEST_LINE = 16 * 1024;
const NEWLINE = 10;

export class LineStore {
  #pieces = [];
  #open = null;
  #tail = new Uint8Array(LONGEST_LINE);
  #tailLength = 0;
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
    this.#tailLength = this.#lines = this.#bytes = 0;
  }

  append(bytes) {
    let at = 0;
    while (at < bytes.length) {
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

  #grow(bytes) {
    const room = bytes.subarray(0, LONGEST_LINE - this.#tailLength);
    this.#tail.set(room, this.#tailLength);
    this.#tailLength += room.length;
  }

  #endLine() {
    const length = this.#tailLength + 1;
    if (!this.#open || this.#open.length + length > PIECE_BYTES) {
      this.#begin();
    }
    const piece = this.#open;
    piece.starts.push(piece.length);
    piece.bytes.set(this.#tail.subarray(0, this.#tailLength), piece.length);
    piece.length += length;
    piece.bytes[piece.length - 1] = NEWLINE;
    piece.count += 1;
    this.#lines += 1;
    this.#bytes += length;
    this.#tailLength = 0;
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
