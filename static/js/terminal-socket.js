// The socket of one terminal: bytes both ways, and a way back to the same session when it breaks.

import { SocketWatch } from "./socket-watch.js";

// So long the session waits for its user on the host.
const HELD_MS = 10_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2000;
const LEFT = 1000;
// Not a leaving: should the server hear it after all, it holds the session.
const GIVEN_UP = 4000;
const NOT_OPENED =
  "The terminal could not be opened: the connection was closed at once. Try again in a moment.";
const ENDS = {
  4401: "You are signed out. Reload the page to sign in.",
  4403: "You may not open a terminal here. Ask the workspace's owner for the role of an editor.",
  4404: "This workspace is gone, or you may no longer see it.",
  1013: "Too many terminals are open. Close one and start again.",
};

export class TerminalSocket {
  #path;
  #query;
  #tell;
  #size = () => [80, 24];
  #socket = null;
  #watch = null;
  #session = "";
  #opened = false;
  #lostAt = null;
  #wait = FIRST_WAIT_MS;
  #timer = null;
  #over = false;
  #said = null;

  /** `tell.bytes(bytes)`, `tell.opened(again)`, `tell.state(words)` and, once, `tell.end(words)`. */
  constructor(path, query, size, tell) {
    this.#path = path;
    this.#query = query;
    this.#size = size;
    this.#tell = tell;
    this.#connect();
  }

  get session() {
    return this.#over ? "" : this.#session;
  }

  /** Nothing more comes: it was left, or it has ended. */
  get isOver() {
    return this.#over;
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  send(bytes) {
    if (this.isOpen) {
      this.#socket.send(bytes);
    }
  }

  resize() {
    if (this.isOpen) {
      this.#socket.send(JSON.stringify({ resize: this.#size() }));
    }
  }

  /** The user leaves on purpose: the host need not keep the session. */
  leave() {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#watch?.stop();
    this.#socket?.close(LEFT);
  }

  /** Does not wait any longer before it tries again; an open socket has to show that it lives. */
  retryNow() {
    if (this.#over) {
      return;
    }
    if (this.#lostAt !== null && this.#socket === null) {
      clearTimeout(this.#timer);
      this.#connect();
    } else {
      this.#watch?.ask();
    }
  }

  #connect() {
    const [cols, rows] = this.#size();
    const query = new URLSearchParams(this.#session ? { session: this.#session } : this.#query);
    query.set("cols", cols);
    query.set("rows", rows);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.#path}?${query}`);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    // What an abandoned socket still says is told by the one that follows it.
    const ours = (act) => (event) => this.#socket === socket && act(event);
    socket.addEventListener("open", ours(() => {
      this.#watch = new SocketWatch(socket, () => this.#abandon());
      this.resize();
    }));
    socket.addEventListener("message", ours((event) => {
      this.#watch.heard();
      if (typeof event.data === "string") {
        this.#control(JSON.parse(event.data));
      } else {
        this.#tell.bytes(new Uint8Array(event.data));
      }
    }));
    socket.addEventListener("close", ours((event) => this.#closed(event.code)));
  }

  #abandon() {
    this.#socket.close(GIVEN_UP);
    this.#closed(null);
  }

  #control(message) {
    // The main process has no session: whoever attaches is told its container alone.
    if (message.session !== undefined || message.container !== undefined) {
      const again = this.#session !== "";
      this.#session = message.session ?? "";
      this.#opened = true;
      this.#lostAt = null;
      this.#wait = FIRST_WAIT_MS;
      this.#tell.opened(again);
      this.resize();
    } else if (message.exit !== undefined) {
      this.#said = message.exit === 0
        ? "The session has ended (exit code 0)."
        : `The session has ended with exit code ${message.exit}.`;
    } else if (message.error) {
      this.#said = message.error;
    }
  }

  #closed(code) {
    this.#socket = null;
    this.#watch?.stop();
    this.#watch = null;
    if (this.#over) {
      return;
    }
    if (this.#said !== null || ENDS[code] || code === LEFT) {
      this.#end(this.#said ?? ENDS[code] ?? "The session has ended.");
      return;
    }
    this.#lostAt ??= performance.now();
    if (!this.#opened || performance.now() - this.#lostAt > HELD_MS) {
      this.#end(this.#opened ? this.#lostWords() : NOT_OPENED);
      return;
    }
    this.#tell.state("connection lost; coming back…");
    this.#timer = setTimeout(() => this.#connect(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
  }

  #lostWords() {
    return this.#session === ""
      ? "The connection was lost for too long. The main process goes on; start again to attach to it."
      : "The connection was lost for too long, and the host has ended the session.";
  }

  #end(words) {
    this.#over = true;
    this.#tell.end(words);
  }
}
