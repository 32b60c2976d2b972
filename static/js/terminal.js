// Terminals of workspaces: a shell or the main process, in the page.

import { recall, remember } from "./kept-session.js";
import { openStrictly } from "./strict-styles.js";
import { TerminalSocket } from "./terminal-socket.js";
import { toast } from "./toasts.js";
import { parseWords } from "./words.js";

// So long a session waits on the host for its user.
const HELD_MS = 9000;
const SCROLLBACK = 5000;
// A snapshot is taken of a container that runs on.
const RUNNING = new Set(["running", "snapshotting"]);
const COLOURS = {
  foreground: "#d9dbd7", cursor: "#6cc9b4", selectionBackground: "#2f4f6f",
  black: "#2f3237", red: "#ff7b72", green: "#6cc97f", yellow: "#e0b04b",
  blue: "#79b0ff", magenta: "#d79bf0", cyan: "#57cbd6", white: "#d3d6d2",
  brightBlack: "#92989f", brightRed: "#ffa198", brightGreen: "#8fe09f", brightYellow: "#f2cf7a",
  brightBlue: "#a5caff", brightMagenta: "#e8bdfa", brightCyan: "#8be4ec", brightWhite: "#ffffff",
};
const terminals = new Map();

export function startTerminals() {
  open(document);
  document.addEventListener("htmx:load", (event) => open(event.target));
  document.addEventListener("htmx:afterSettle", closeGone);
  window.addEventListener("pagehide", () => terminals.forEach((terminal) => terminal.keep()));
  const retry = () => terminals.forEach((terminal) => terminal.retryNow());
  window.addEventListener("online", retry);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && retry());
  document.addEventListener("trailer:state", ({ detail }) => {
    for (const terminal of terminals.values()) {
      terminal.heard(detail);
    }
  });
}

function open(root) {
  for (const element of root.querySelectorAll("[data-terminal]")) {
    if (!terminals.has(element)) {
      terminals.set(element, new PageTerminal(element));
    }
  }
}

function closeGone() {
  for (const [element, terminal] of terminals) {
    if (!element.isConnected) {
      terminal.leave();
      terminals.delete(element);
    }
  }
}

class PageTerminal {
  #element;
  #workspace;
  #screen = null;
  #prepared = null;
  #turn = 0;
  #fit = null;
  #socket = null;
  #observer = null;
  #encoder = new TextEncoder();

  constructor(element) {
    this.#element = element;
    this.#workspace = element.dataset.terminal.slice("workspace:".length);
    this.#part("again").addEventListener("click", () => this.#begin());
    this.#part("copy").addEventListener("click", () => this.#copy());
    this.#part("paste").addEventListener("click", () => this.#paste());
    this.#part("choice").addEventListener("change", () => this.#choose());
    this.#part("command").addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.#begin();
      }
    });
    if (element.dataset.running === undefined) {
      this.#end("The workspace is not running. Start it, and the terminal opens by itself.", "not open");
      this.#part("again").hidden = true;
    } else {
      this.#begin(this.#kept());
    }
  }

  /** A page that is loaded again finds its session, if it is quick. */
  keep() {
    if (this.#socket?.session) {
      remember(this.#key(), { session: this.#socket.session, at: Date.now() });
    }
  }

  #kept() {
    const { session, at } = recall(this.#key());
    return session && Date.now() - at < HELD_MS ? session : "";
  }

  /** Opens by itself once the workspace runs. */
  heard({ resource, status }) {
    if (resource !== `workspace:${this.#workspace}`) {
      return;
    }
    const runs = RUNNING.has(status);
    const begins = runs && this.#element.dataset.running === undefined;
    this.#element.toggleAttribute("data-running", runs);
    // A session that outlived the change is left alone.
    if (begins && (this.#socket?.isOver ?? true)) {
      this.#begin();
    }
  }

  leave() {
    this.#socket?.leave();
    this.#observer?.disconnect();
    this.#screen?.dispose();
  }

  retryNow() {
    this.#socket?.retryNow();
  }

  #choose() {
    const custom = this.#part("choice").value === "custom";
    this.#part("command").hidden = !custom;
    if (custom) {
      this.#part("command").focus();
    } else {
      this.#begin();
    }
  }

  /** `session`: one to come back to, from before the page was loaded. */
  async #begin(session = "") {
    this.#turn += 1;
    const turn = this.#turn;
    this.#socket?.leave();
    this.#part("end").hidden = true;
    this.#say("connecting…");
    const isReady = await this.#ready();
    // Only the newest choice opens anything.
    if (turn !== this.#turn || !this.#element.isConnected) {
      return;
    }
    if (!isReady) {
      this.#end("The terminal's script did not load. Check your connection and reload the page.");
      return;
    }
    this.#screen.reset();
    const [path, query] = session ? [`/ws/workspaces/${this.#workspace}/exec/`, { session }] : this.#address();
    let isOpen = false;
    this.#socket = new TerminalSocket(path, query, () => [this.#screen.cols, this.#screen.rows], {
      bytes: (bytes) => this.#screen.write(bytes),
      opened: (again) => {
        isOpen = true;
        if (again) {
          // What was on the screen comes again, from the host.
          this.#screen.reset();
        }
        this.#say("connected");
        this.#screen.options.disableStdin = false;
        this.#screen.focus();
      },
      state: (words) => this.#say(words),
      // A session that is not there any more is no news: a new one takes its place.
      end: (words) => (session && !isOpen ? this.#begin() : this.#end(words)),
    });
  }

  #address() {
    const choice = this.#part("choice").value;
    const base = `/ws/workspaces/${this.#workspace}`;
    if (choice === "attach") {
      return [`${base}/attach/`, []];
    }
    const words = choice === "custom" ? parseWords(this.#part("command").value) : choice ? [choice] : [];
    return [`${base}/exec/`, words.map((word) => ["cmd", word])];
  }

  /** Whether there is a screen; it is made once, however often it is asked for meanwhile. */
  async #ready() {
    this.#prepared ??= this.#prepare();
    try {
      await this.#prepared;
      return true;
    } catch {
      this.#prepared = null;
      return false;
    }
  }

  async #prepare() {
    const { xterm, fit, styles } = this.#element.dataset;
    const [{ Terminal }, { FitAddon }] = await Promise.all([import(xterm), import(fit), loaded(styles)]);
    this.#screen = new Terminal({
      cursorBlink: true,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      fontSize: 13,
      scrollback: SCROLLBACK,
      // Of one colour with what is around it, which differs between light and dark.
      theme: { ...COLOURS, background: getComputedStyle(this.#element).backgroundColor },
    });
    this.#fit = new FitAddon();
    this.#screen.loadAddon(this.#fit);
    openStrictly(this.#screen, this.#part("screen"));
    this.#screen.textarea.setAttribute("aria-label", "Terminal input. Shift and Escape leave it.");
    this.#screen.attachCustomKeyEventHandler((event) => this.#takes(event));
    this.#screen.onData((text) => this.#socket?.send(this.#encoder.encode(text)));
    this.#screen.onBinary((text) => this.#socket?.send(Uint8Array.from(text, (sign) => sign.charCodeAt(0))));
    this.#screen.onResize(() => this.#socket?.resize());
    this.#observer = new ResizeObserver(() => this.#fit.fit());
    this.#observer.observe(this.#part("screen"));
    this.#fit.fit();
  }

  /** Whether the terminal gets the key. */
  #takes(event) {
    if (event.type !== "keydown") {
      return true;
    }
    const letter = event.key.toLowerCase();
    if (event.key === "Escape" && event.shiftKey) {
      this.#part("copy").focus();
      return false;
    }
    const copies = event.ctrlKey && letter === "c" && (event.shiftKey || this.#screen.hasSelection());
    if (copies) {
      event.preventDefault();
      this.#copy();
      return false;
    }
    // The browser itself pastes: its event reaches the terminal.
    return !(event.ctrlKey && letter === "v");
  }

  async #copy() {
    const text = this.#screen?.getSelection();
    if (!text) {
      toast("Nothing is selected. Mark text in the terminal first.", "error");
      return;
    }
    try {
      await navigator.clipboard.writeText(text);
      this.#screen.clearSelection();
      toast("Copied.");
    } catch {
      toast("The browser does not allow copying here. Use its own menu.", "error");
    }
  }

  async #paste() {
    try {
      this.#screen.paste(await navigator.clipboard.readText());
      this.#screen.focus();
    } catch {
      toast("The browser does not allow pasting by button. Press Ctrl-V in the terminal.", "error");
    }
  }

  #end(words, state = "ended") {
    this.#say(state);
    this.#part("end-words").textContent = words;
    this.#part("end").hidden = false;
    this.#part("again").hidden = false;
    if (this.#screen) {
      this.#screen.options.disableStdin = true;
      if (this.#element.contains(document.activeElement)) {
        this.#part("again").focus();
      }
    }
  }

  #key() {
    return `trailer-terminal-${this.#workspace}`;
  }

  #say(words) {
    this.#part("state").textContent = words;
  }

  #part(name) {
    return this.#element.querySelector(`[data-terminal-${name}]`);
  }
}

/** The terminal's style sheet, once for all. */
function loaded(address) {
  if (document.querySelector(`link[href="${CSS.escape(address)}"]`)) {
    return Promise.resolve();
  }
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = address;
  document.head.append(link);
  return new Promise((resolve, reject) => {
    link.addEventListener("load", resolve);
    link.addEventListener("error", reject);
  });
}
