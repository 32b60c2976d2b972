// Charts of a host or workspace over time: <div data-chart="host:<id>"></div>.
// For a workspace, data-chart-host="<host id>" makes new samples appear with each heartbeat.

import { send } from "./api.js";
import { columns, GPU, isKnown, KINDS, upperEnd } from "./chart-kinds.js";
import { loadPlot, plot } from "./chart-plot.js";

const RANGES = [
  ["1h", "1 h", 3600],
  ["6h", "6 h", 6 * 3600],
  ["24h", "24 h", 24 * 3600],
  ["7d", "7 d", 7 * 24 * 3600],
];
const COLLECTIONS = { host: "hosts", workspace: "workspaces" };
const WORDS = { "1h": "the last hour", "6h": "the last 6 hours", "24h": "the last 24 hours", "7d": "the last 7 days" };
const REFRESH_MS = 15_000;
const SLOW_REFRESH_MS = 60_000;
const KEPT = "trailer-chart-range";

// Element -> its charts, while it is on the page.
const boards = new Map();

export function startCharts() {
  openAll();
  document.addEventListener("htmx:afterSettle", openAll);
  document.addEventListener("trailer:usage", (event) => {
    for (const board of boards.values()) {
      if (event.detail.resource === `usage:${board.host}`) {
        board.refreshSoon();
      }
    }
  });
  new MutationObserver(() => boards.forEach((board) => board.draw())).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
}

function openAll() {
  for (const [element, board] of boards) {
    if (!element.isConnected) {
      board.close();
      boards.delete(element);
    }
  }
  for (const element of document.querySelectorAll("[data-chart]")) {
    if (!boards.has(element)) {
      boards.set(element, new Board(element));
    }
  }
}

class Board {
  constructor(element) {
    const [kind, id] = element.dataset.chart.split(":");
    this.element = element;
    this.kinds = KINDS[kind];
    this.host = kind === "host" ? id : element.dataset.chartHost;
    this.address = `/api/v1/${COLLECTIONS[kind]}/${id}/metrics/`;
    this.range = RANGES.find(([name]) => name === kept()) ?? RANGES[0];
    this.answer = null;
    this.plots = [];
    this.build();
    this.observer = new ResizeObserver(() => this.plots.forEach((one) => one.resize()));
    this.observer.observe(this.grid);
    this.timer = setInterval(() => this.tick(), REFRESH_MS);
    this.load();
  }

  build() {
    this.element.classList.add("chart-board");
    const bar = document.createElement("div");
    bar.className = "ranges";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Time range");
    for (const range of RANGES) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "range";
      button.textContent = range[1];
      button.dataset.range = range[0];
      button.setAttribute("aria-pressed", String(range === this.range));
      button.addEventListener("click", () => this.choose(range));
      bar.append(button);
    }
    this.status = document.createElement("p");
    this.status.className = "chart-empty";
    this.status.setAttribute("role", "status");
    this.status.textContent = "Loading…";
    this.grid = document.createElement("div");
    this.grid.className = "chart-grid";
    this.element.replaceChildren(bar, this.status, this.grid);
  }

  choose(range) {
    this.range = range;
    keep(range[0]);
    for (const button of this.element.querySelectorAll("[data-range]")) {
      button.setAttribute("aria-pressed", String(button.dataset.range === range[0]));
    }
    this.load();
  }

  tick() {
    const due = this.range === RANGES[0] ? REFRESH_MS : SLOW_REFRESH_MS;
    if (document.visibilityState === "visible" && performance.now() - this.loadedAt >= due * 0.9) {
      this.load();
    }
  }

  /** The server has just stored a sample; coarser ranges would not show it. */
  refreshSoon() {
    if (this.range === RANGES[0] && document.visibilityState === "visible") {
      this.load();
    }
  }

  async load() {
    const range = this.range;
    this.loadedAt = performance.now();
    try {
      const since = new Date(Date.now() - range[2] * 1000).toISOString();
      const [answer] = await Promise.all([send("GET", `${this.address}?since=${since}`), loadPlot()]);
      if (range === this.range && this.element.isConnected) {
        this.answer = answer;
        this.draw();
      }
    } catch (error) {
      this.say(`The samples could not be read. ${error.message}`);
    }
  }

  draw() {
    if (this.answer === null) {
      return;
    }
    const shown = this.shown();
    this.say(shown.length > 0 ? "" : (this.element.dataset.chartEmpty ?? "No samples in this time yet. They come with the agent's heartbeats."));
    const end = Date.now() / 1000;
    const span = [end - this.range[2], end];
    const sync = this.element.dataset.chart;
    const titles = shown.map(({ title }) => title).join();
    if (titles !== this.titles || this.theme !== document.documentElement.dataset.theme) {
      this.plots.forEach((one) => one.destroy());
      this.grid.replaceChildren();
      this.plots = shown.map(({ kind, title }) => plot(this.grid, kind, title, sync));
      this.titles = titles;
      this.theme = document.documentElement.dataset.theme;
    }
    shown.forEach(({ kind, points }, index) => {
      const data = columns(points, kind, this.answer.resolution);
      const highest = Math.max(0, ...data.slice(1).flat().filter((value) => value !== null));
      this.plots[index].show(data, span, upperEnd(kind, points, highest), WORDS[this.range[0]]);
    });
  }

  /** Only charts with something on them. */
  shown() {
    const { results, gpus = [] } = this.answer;
    const cards = gpus.flatMap((gpu, number) =>
      GPU.map((kind) => ({ kind, points: gpu.results, title: `${kind.title}${gpus.length > 1 ? ` ${number}` : ""}` })),
    );
    const own = this.kinds.map((kind) => ({ kind, points: results, title: kind.title }));
    return [...own, ...cards].filter(({ kind, points }) => isKnown(points, kind));
  }

  say(sentence) {
    this.status.textContent = sentence;
    this.status.hidden = !sentence;
  }

  close() {
    clearInterval(this.timer);
    this.observer.disconnect();
    this.plots.forEach((one) => one.destroy());
  }
}

function kept() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(name) {
  try {
    sessionStorage.setItem(KEPT, name);
  } catch {
    // Without storage the choice lasts for this page.
  }
}
