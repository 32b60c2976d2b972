// Finds a socket dead that does not know it, as after a laptop's sleep or a change of networks: a silent
// one is asked for an answer, and one that gives none is given up.

const SILENCE_MS = 25_000;
const ANSWER_MS = 10_000;

export class SocketWatch {
  #socket;
  #dead;
  #timer = null;

  /** `dead()` is called once, when the open socket gave no answer. */
  constructor(socket, dead) {
    this.#socket = socket;
    this.#dead = dead;
    this.heard();
  }

  /** Anything that arrives proves it alive. */
  heard() {
    this.#after(SILENCE_MS, () => this.ask());
  }

  /** Does not wait for the silence. */
  ask() {
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ ping: 1 }));
      this.#after(ANSWER_MS, () => this.#dead());
    }
  }

  stop() {
    clearTimeout(this.#timer);
  }

  #after(pause, act) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, pause);
  }
}
