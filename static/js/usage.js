// Bars of what is in use, kept true by the live socket: one frame per host and heartbeat.
//
// <div data-usage="host:<id>"></div> shows CPU, memory and disk of a host,
// <div data-usage="workspace:<id>" data-usage-host="<host id>"></div> CPU and memory of a workspace.

import { bytes, percent } from "./amounts.js";

// The share from which a bar warns, and from which it alarms; a busy CPU is nothing to fear.
const HIGH = 0.8;
const FULL = 0.95;
const WORDS = { cpu: "CPU", memory: "Memory", disk: "Disk" };

// Host id -> its last frame, for parts of the page that are drawn later.
const frames = new Map();

export function startUsage() {
  document.addEventListener("trailer:usage", (event) => {
    const [, host] = event.detail.resource.split(":");
    frames.set(host, event.detail);
    for (const element of document.querySelectorAll("[data-usage]")) {
      if (hostOf(element) === host) {
        show(element, event.detail);
      }
    }
  });
  document.addEventListener("htmx:afterSwap", showKnown);
}

/** The host whose frames the bars or charts of an element wait for. */
export function hostOf(element) {
  const { usage, usageHost, chart, chartHost } = element.dataset;
  const [kind, id] = (usage ?? chart).split(":");
  return kind === "host" ? id : (usageHost ?? chartHost);
}

function showKnown() {
  for (const element of document.querySelectorAll("[data-usage]:empty")) {
    const frame = frames.get(hostOf(element));
    if (frame) {
      show(element, frame);
    }
  }
}

function show(element, frame) {
  const [kind, id] = element.dataset.usage.split(":");
  const meters = kind === "host" ? hostMeters(frame.host) : workspaceMeters(frame.workspaces[id]);
  element.classList.add("usage");
  element.classList.toggle("is-stale", !frame.fresh);
  element.classList.toggle("is-empty", meters.every(({ share }) => share === null));
  for (const meter of meters) {
    draw(element, meter);
  }
}

function hostMeters(use) {
  return [
    { name: "cpu", share: part(use.cpu_percent, 100), text: use.cpu_percent === null ? "" : percent(use.cpu_percent) },
    amount("memory", use.memory_bytes, use.memory_total_bytes),
    amount("disk", use.disk_used_bytes, use.disk_total_bytes),
  ];
}

/** A workspace that is not running has no use. */
function workspaceMeters(use) {
  const { cpu_percent = null, cpu_limit_percent, memory_bytes = null, memory_limit_bytes } = use ?? {};
  return [
    { name: "cpu", share: part(cpu_percent, cpu_limit_percent), text: cpu_percent === null ? "" : percent(cpu_percent) },
    amount("memory", memory_bytes, memory_limit_bytes),
  ];
}

function amount(name, used, total) {
  const text = used === null ? "" : bytes(used);
  return { name, share: part(used, total), text, total: text && total ? ` of ${bytes(total)}` : "" };
}

function part(used, total) {
  return used === null || !total ? null : Math.min(1, used / total);
}

function draw(element, { name, share, text, total = "" }) {
  const meter = element.querySelector(`[data-meter="${name}"]`) ?? add(element, name);
  const track = meter.querySelector(".meter-track");
  const alarming = name !== "cpu" && share !== null;
  meter.classList.toggle("is-high", alarming && share >= HIGH && share < FULL);
  meter.classList.toggle("is-full", alarming && share >= FULL);
  meter.classList.toggle("is-unknown", share === null);
  meter.title = text ? `${WORDS[name]}: ${text}${total}` : `${WORDS[name]}: nothing known`;
  meter.querySelector(".meter-text").firstChild.data = text || "–";
  meter.querySelector(".meter-total").textContent = total;
  track.setAttribute("aria-valuenow", String(Math.round((share ?? 0) * 100)));
  track.setAttribute("aria-valuetext", text + total || "unknown");
  track.firstElementChild.style.width = `${((share ?? 0) * 100).toFixed(1)}%`;
}

function add(element, name) {
  const meter = document.createElement("div");
  meter.className = "meter";
  meter.dataset.meter = name;
  const label = document.createElement("span");
  label.className = "meter-label";
  label.textContent = WORDS[name];
  const track = document.createElement("span");
  track.className = "meter-track";
  track.setAttribute("role", "meter");
  track.setAttribute("aria-label", WORDS[name]);
  track.setAttribute("aria-valuemin", "0");
  track.setAttribute("aria-valuemax", "100");
  track.append(document.createElement("span"));
  const value = document.createElement("span");
  value.className = "meter-text";
  const total = document.createElement("span");
  total.className = "meter-total";
  value.append("", total);
  meter.append(label, track, value);
  element.append(meter);
  return meter;
}
