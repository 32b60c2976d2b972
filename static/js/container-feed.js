// The output of a workspace's container over its socket, opened again when it breaks. Lines carry the
// engine's time, so what comes a second time after a break is known and left out.

import { SocketWatch } from "./socket-watch.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const TAIL_AFTER_BREAK = 5000;
const TIME_BYTES = 30;
const NEWLINE = 10;
const SPACE = 32;
const ENDS = {
  4401: "You are signed out. Reload the page to sign in.",
  4403: "You may no longer see these logs. Ask the workspace's owner.",
};
const PAUSES = {
  1000: "the log ends here; waiting for the container",
  1013: "too many logs are open; trying again",
  4404: "There is no container yet, or it is gone.",
};

export class ContainerFeed {
  #path;
  #tail;
  #tell;
  #socket = null;
  #watch = null;
  #timer = null;
  #wait = FIRST_WAIT_MS;
  #over = false;
  #times;

  /** `tell.bytes(bytes)`, `tell.container(id)`, `tell.missed()` and `tell.state(words)`. */
  constructor(workspace, tail, tell) {
    this.#path = `/ws/workspaces/${workspace}/logs/`;
    this.#tail = tail;
    this.#tell = tell;
    this.#times = new LastTime();
    this.#connect(tail);
  }

  stop() {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#watch?.stop();
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
  }

  /** Does not wait any longer before it tries again; an open socket has to show that it lives. */
  retryNow() {
    if (this.#over) {
      return;
    }
    if (this.#socket === null) {
      clearTimeout(this.#timer);
      this.#reconnect();
    } else {
      this.#watch?.ask();
    }
  }

  #reconnect() {
    const known = this.#times.last !== "";
    this.#times.resume();
    this.#connect(known ? TAIL_AFTER_BREAK : this.#tail);
  }

  #connect(tail) {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.#path}?tail=${tail}&timestamps=1`);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let said = "";
    // What an abandoned socket still says is told by the one that follows it.
    const ours = (act) => (event) => this.#socket === socket && act(event);
    socket.addEventListener("open", ours(() => {
      this.#watch = new SocketWatch(socket, () => this.#abandon());
      this.#tell.state("live");
    }));
    socket.addEventListener("message", ours((event) => {
      this.#watch.heard();
      if (typeof event.data === "string") {
        said = this.#control(JSON.parse(event.data)) || said;
      } else {
        this.#wait = FIRST_WAIT_MS;
        this.#take(new Uint8Array(event.data));
      }
    }));
    socket.addEventListener("close", ours((event) => this.#closed(event.code, said)));
  }

  #control(message) {
    if (message.container) {
      this.#tell.container(message.container);
    }
    return message.error || "";
  }

  #take(bytes) {
    const fresh = this.#times.onlyNew(bytes);
    if (this.#times.missed) {
      this.#times.missed = false;
      this.#tell.missed();
    }
    if (fresh.length > 0) {
      this.#tell.bytes(fresh);
    }
  }

  #abandon() {
    this.#socket.close();
    this.#closed(null, "");
  }

  #closed(code, said) {
    this.#socket = null;
    this.#watch?.stop();
    this.#watch = null;
    if (ENDS[code]) {
      this.#over = true;
      this.#tell.state(said || ENDS[code]);
      return;
    }
    if (PAUSES[code]) {
      this.#wait = LONGEST_WAIT_MS;
    }
    this.#tell.state(said || PAUSES[code] || "reconnecting…");
    this.#timer = setTimeout(() => this.#reconnect(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
  }
}

/** Follows the times at the beginnings of lines; after a break, leaves out lines that are not newer. */
class LastTime {
  last = "";
  missed = false;
  #resuming = false;
  #first = true;
  #rest = new Uint8Array(0);
  // The line that has not ended: how it begins, and how much of it was passed on.
  #head = new Uint8Array(0);
  #passed = 0;
  #decoder = new TextDecoder();

  resume() {
    this.#resuming = this.last !== "" || this.#passed > 0;
    this.#first = true;
    this.#rest = new Uint8Array(0);
  }

  onlyNew(bytes) {
    if (!this.#resuming) {
      this.#note(bytes);
      return bytes;
    }
    const all = joined(this.#rest, bytes);
    let at = 0;
    for (let end = all.indexOf(NEWLINE); end >= 0; end = all.indexOf(NEWLINE, at)) {
      const time = this.#time(all, at);
      if (time > this.last) {
        this.#resuming = false;
        return this.#goOn(all.slice(at));
      }
      this.#first = false;
      at = end + 1;
    }
    this.#rest = all.slice(at);
    return new Uint8Array(0);
  }

  /** A line that the break cut comes whole again: what was passed on of it is left out. */
  #goOn(fresh) {
    const passed = this.#passed;
    const isSame = passed > 0 && this.#head.every((byte, at) => fresh[at] === byte);
    this.missed = passed > 0 ? !isSame : this.#first;
    this.#head = new Uint8Array(0);
    this.#passed = 0;
    this.#note(fresh);
    return isSame ? fresh.subarray(passed) : fresh;
  }

  /** The time of the last whole line of these bytes, and what is open after it. */
  #note(bytes) {
    const end = bytes.lastIndexOf(NEWLINE);
    if (end >= 0) {
      const start = end === 0 ? 0 : bytes.lastIndexOf(NEWLINE, end - 1) + 1;
      const line = bytes.subarray(start, start + TIME_BYTES + 1);
      this.last = this.#time(start === 0 ? joined(this.#head, line) : line, 0) || this.last;
      this.#head = new Uint8Array(0);
      this.#passed = 0;
    }
    const open = bytes.subarray(end + 1);
    this.#head = joined(this.#head, open).slice(0, TIME_BYTES + 1);
    this.#passed += open.length;
  }

  /** Of one width, so that they compare as text. "" when there is none. */
  #time(bytes, at) {
    const end = bytes.indexOf(SPACE, at);
    if (end - at !== TIME_BYTES || bytes[at + 4] !== 45) {
      return "";
    }
    return this.#decoder.decode(bytes.subarray(at, end));
  }
}

function joined(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
