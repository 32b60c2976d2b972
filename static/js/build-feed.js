// The output of one build by byte offset: over its socket, which is opened again from where it broke;
// where no socket comes through, over the REST API. Nothing is left out and nothing comes twice.

import { read } from "./api.js";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 10_000;
// A socket that is silent for so long may be dead without knowing it, as after a laptop's sleep.
const SILENCE_MS = 20_000;
const NOT_SIGNED_IN = 4401;
const NOT_THERE = 4404;

export class BuildFeed {
  #build;
  #offset;
  #tell;
  #socket = null;
  #timer = null;
  #wait = FIRST_WAIT_MS;
  #over = false;

  /** `tell.text(text)`, `tell.state(words)` and, once, `tell.complete(status)`. */
  constructor(build, offset, tell) {
    this.#build = build;
    this.#offset = offset;
    this.#tell = tell;
    this.#connect();
  }

  stop() {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#drop();
  }

  /** The byte that comes next. */
  get offset() {
    return this.#offset;
  }

  /** Nothing more comes, unless a new feed asks for it. */
  get isOver() {
    return this.#over;
  }

  /** Does not wait any longer before it tries again. */
  retryNow() {
    if (!this.#over && this.#socket === null) {
      clearTimeout(this.#timer);
      this.#connect();
    }
  }

  #connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const path = `/ws/builds/${this.#build}/log/?offset=${this.#offset}`;
    const socket = new WebSocket(`${scheme}//${location.host}${path}`);
    this.#socket = socket;
    let opened = false;
    // What an abandoned socket still says is told by the one that follows it.
    const ours = (act) => (event) => this.#socket === socket && act(event);
    socket.addEventListener("open", ours(() => {
      opened = true;
      this.#wait = FIRST_WAIT_MS;
      this.#tell.state("live");
      this.#watch();
    }));
    socket.addEventListener("message", ours((event) => this.#receive(JSON.parse(event.data))));
    socket.addEventListener("close", ours((event) => this.#closed(event.code, opened)));
  }

  #receive(frame) {
    if (frame.complete) {
      this.#complete(frame.status);
      return;
    }
    this.#offset = frame.offset;
    this.#tell.text(frame.text);
    this.#watch();
  }

  async #closed(code, opened) {
    this.#socket = null;
    clearTimeout(this.#timer);
    if (code === NOT_SIGNED_IN) {
      this.#end("You are signed out. Reload the page to sign in.");
    } else if (code === NOT_THERE) {
      this.#end("This log is gone, or you may no longer see it.");
    } else {
      this.#tell.state("reconnecting…");
      if (!opened) {
        await this.#readOnce();
      }
      this.#later();
    }
  }

  #later() {
    if (this.#over || this.#socket !== null) {
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS);
  }

  /** Asks over REST, unless the socket was quicker. */
  async #readOnce() {
    const asked = this.#offset;
    let answer;
    try {
      answer = await read(`/api/v1/builds/${this.#build}/log/?offset=${asked}`);
    } catch (error) {
      this.#tell.state(error.message);
      return;
    }
    const text = await answer.text();
    if (!this.#over && asked === this.#offset) {
      this.#take(answer.headers, text);
    }
  }

  #take(headers, text) {
    const next = Number(headers.get("Trailer-Log-Offset"));
    if (next !== this.#offset) {
      this.#drop();
      this.#offset = next;
      this.#tell.text(text);
    }
    if (headers.get("Trailer-Log-Complete") === "true") {
      this.#complete("");
    } else if (this.#socket === null) {
      this.#tell.state("live, by asking again");
    }
  }

  /** Looks past a silent socket; one that kept something back is replaced. */
  #watch() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      await this.#readOnce();
      if (this.#socket === null) {
        this.#later();
      } else if (!this.#over) {
        this.#watch();
      }
    }, SILENCE_MS);
  }

  #complete(status) {
    if (!this.#over) {
      this.stop();
      this.#tell.complete(status);
    }
  }

  #end(words) {
    this.#over = true;
    this.#tell.state(words);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }
}
