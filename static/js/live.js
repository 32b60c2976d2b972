// The one socket of a page: subscribes to what is on it, and keeps that true.

import { Elsewhere } from "./elsewhere.js";
import { followedForNews } from "./notifications.js";
import { SocketWatch } from "./socket-watch.js";
import { all, showDeleted, showState } from "./states.js";
import { toastLater } from "./toasts.js";
import { hostOf } from "./usage.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
// Shorter gaps are not worth a banner; a page being left closes its socket too.
const BANNER_AFTER_MS = 1500;
const REFRESH_AFTER_MS = 250;
const SHORTEST_PAUSE_MS = 1000;
const AFTER_ERROR_MS = 3000;
const NOT_SIGNED_IN = 4401;
const PARTS = "[data-live-list], [data-follows], [data-part]";

let socket = null;
let watch = null;
let subscribed = new Set();
let wait = FIRST_WAIT_MS;
let retry = null;
let banner = null;
let connectedBefore = false;
// What was last told about each resource, to see what is news.
const told = new Map();
const elsewhere = new Elsewhere();
const refreshes = new Map();
const refreshed = new Map();
// What this page itself is deleting; the script that does so leads on.
const leaving = new Set();

export function startLive() {
  connect();
  document.addEventListener("htmx:load", subscribeToPage);
  document.addEventListener("trailer:follow", subscribeToPage);
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (target.matches("[data-live-list]")) {
      elsewhere.drawn((resource) => all("data-row", resource).length > 0);
    }
  });
  // A request may be cut off by a change of the machine's network, such as a container's start.
  document.addEventListener("htmx:sendError", (event) => {
    if (event.target.matches(PARTS)) {
      refresh(event.target);
    }
  });
  // As while the web processes of a deployment are exchanged, which the socket does not notice.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.target.matches(PARTS) && event.detail.xhr.status >= 500) {
      refresh(event.target, { pause: AFTER_ERROR_MS });
    }
  });
  // Opened while the answer was on its way: it waits, like a refresh that has not begun.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig } = event.detail;
    const isRefresh = requestConfig?.triggeringEvent?.type === "trailer:refresh";
    if (isRefresh && target.querySelector("dialog[open]")) {
      event.detail.shouldSwap = false;
      refresh(target);
    }
  });
  window.addEventListener("online", () => {
    showBanner(!isLive());
    reconnectNow();
  });
  window.addEventListener("offline", () => showBanner(true));
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") {
      reconnectNow();
    }
  });
}

export function isLive() {
  return socket !== null && socket.readyState === WebSocket.OPEN;
}

export function expectDeletion(resource) {
  leaving.add(resource);
}

/** Draws again every part of the page that follows something. */
export function refreshAll() {
  document.querySelectorAll(PARTS).forEach((part) => refresh(part));
}

/** Draws the head of an object's page again: its name, or what it is made from, may have changed. */
export function renewHead() {
  const head = document.querySelector(".page-head[data-page-of]");
  if (head) {
    const how = { target: ".page-head", select: ".page-head", selectOOB: "#crumbs", swap: "outerHTML" };
    htmx.ajax("GET", location.href, { source: head, ...how });
  }
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const made = new WebSocket(`${scheme}//${location.host}/ws/live/`);
  socket = made;
  // What an abandoned socket still says is told by the one that follows it.
  const ours = (act) => (event) => socket === made && act(event);
  made.addEventListener("open", ours(opened));
  made.addEventListener("message", ours((event) => {
    watch.heard();
    receive(JSON.parse(event.data));
  }));
  made.addEventListener("close", ours((event) => closed(event.code)));
}

function abandon() {
  const dead = socket;
  socket = null;
  dead.close();
  closed(null);
}

function opened() {
  watch = new SocketWatch(socket, abandon);
  subscribed = new Set();
  wait = FIRST_WAIT_MS;
  clearTimeout(banner);
  showBanner(false);
  subscribeToPage();
  if (connectedBefore) {
    // Single resources are told again on subscribing; lists are not.
    refreshAll();
  }
  connectedBefore = true;
}

function closed(code) {
  watch?.stop();
  if (code === NOT_SIGNED_IN) {
    location.assign(`/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
    return;
  }
  clearTimeout(banner);
  banner = setTimeout(() => showBanner(true), BANNER_AFTER_MS);
  clearTimeout(retry);
  retry = setTimeout(connect, wait * (0.75 + Math.random() / 2));
  wait = Math.min(wait * 2, LONGEST_WAIT_MS);
}

function reconnectNow() {
  if (socket === null || socket.readyState === WebSocket.CLOSED) {
    clearTimeout(retry);
    connect();
  } else {
    watch?.ask();
  }
}

function showBanner(lost) {
  document.getElementById("offline").hidden = !lost;
}

function subscribeToPage() {
  if (!isLive()) {
    return;
  }
  const wanted = [...namesOnPage()].filter((name) => !subscribed.has(name));
  if (wanted.length > 0) {
    wanted.forEach((name) => subscribed.add(name));
    socket.send(JSON.stringify({ subscribe: wanted }));
  }
}

function namesOnPage() {
  const names = new Set(followedForNews());
  for (const element of document.querySelectorAll("[data-resource]")) {
    names.add(element.dataset.resource);
  }
  for (const element of document.querySelectorAll("[data-live-list]")) {
    names.add(element.dataset.liveList);
  }
  for (const element of document.querySelectorAll("[data-usage], [data-chart]")) {
    const host = hostOf(element);
    if (host) {
      names.add(`usage:${host}`);
    }
  }
  for (const element of document.querySelectorAll("[data-follows]")) {
    element.dataset.follows.split(" ").forEach((name) => names.add(name));
  }
  return names;
}

function receive(message) {
  if (message.pong !== undefined) {
    return;
  }
  if (message.error) {
    subscribed.delete(message.resource);
    return;
  }
  if (message.resource.startsWith("usage:")) {
    document.dispatchEvent(new CustomEvent("trailer:usage", { detail: message }));
    return;
  }
  const kind = `${message.resource.split(":")[0]}s`;
  if (message.deleted) {
    told.delete(message.resource);
    elsewhere.forget(message.resource);
    gone(message.resource, kind);
    return;
  }
  const before = told.get(message.resource) ?? shownOnPage(message.resource);
  told.set(message.resource, message);
  showState({ ...message, previous: before?.status });
  addToLists(message, kind);
  const isRevised = before?.revision !== undefined && before.revision !== message.revision;
  // An order, such as that of an update, changes no status until it is carried out.
  if (before === undefined || coarse(before) !== coarse(message) || isRevised) {
    refreshFollowers(kind);
  }
  if (before !== undefined && !isOnlyProgress(before, message)) {
    // A badge that changed next to facts that did not would contradict them.
    refreshFollowers(message.resource, { atOnce: coarse(before) !== coarse(message) });
  }
  if (isRevised && all("data-page-of", message.resource).length > 0) {
    renewHead();
  }
}

/** The first word about a resource is news only if it differs from what the server rendered. */
function shownOnPage(resource) {
  const badge = all("data-resource", resource)[0];
  return badge ? { status: badge.dataset.status } : undefined;
}

function coarse(state) {
  return state.status;
}

/** The server speaks when something changed, even if the state shows it not; a bar moves by itself. */
function isOnlyProgress(before, message) {
  const same = (name) => JSON.stringify(before[name]) === JSON.stringify(message[name]);
  return !same("progress") && Object.keys(message).every((name) => name === "progress" || same(name));
}

function gone(resource, kind) {
  if (showDeleted(resource)) {
    setTimeout(() => refreshEmptied(kind), 250);
  }
  refreshFollowers(kind);
  const page = all("data-page-of", resource)[0];
  if (page && !leaving.has(resource)) {
    toastLater("This was deleted.");
    location.assign(page.dataset.goneTo);
  }
}

function addToLists(message, kind) {
  const lists = all("data-live-list", kind);
  const isMissing = all("data-row", message.resource).length === 0;
  if (lists.length > 0 && isMissing && elsewhere.isNews(message)) {
    lists.forEach((list) => refresh(list, { pause: elsewhere.pause }));
  }
}

function refreshEmptied(kind) {
  for (const list of all("data-live-list", kind)) {
    if (!list.querySelector("[data-row]")) {
      refresh(list);
    }
  }
}

/** Draws again what follows this resource, or this kind of resources. */
export function refreshFollowers(name, { atOnce = false } = {}) {
  for (const part of document.querySelectorAll("[data-follows]")) {
    if (part.dataset.follows.split(" ").includes(name)) {
      refresh(part, { atOnce });
    }
  }
}

/** Many changes at once make one request, and a stream of them one every now and then. A part that
    is being drawn is drawn once more after that: the change may have come too late for it. */
function refresh(part, { atOnce = false, pause = SHORTEST_PAUSE_MS } = {}) {
  const selector = part.id ? `#${part.id}` : `[hx-get="${CSS.escape(part.getAttribute("hx-get"))}"]`;
  const now = performance.now();
  const since = now - (refreshed.get(selector) ?? -Infinity);
  const wanted = atOnce ? 0 : Math.max(REFRESH_AFTER_MS, pause - since);
  const planned = refreshes.get(selector);
  if (planned === undefined || now + wanted < planned.due) {
    clearTimeout(planned?.timer);
    later(selector, wanted);
  }
}

function later(selector, pause) {
  const draw = () => {
    refreshes.delete(selector);
    const part = document.querySelector(selector);
    // What was only just put in hears nothing yet. A dialog that somebody fills in is not taken away.
    const isDeaf = part?.classList.contains("htmx-request") || part?.closest(".htmx-added");
    if (isDeaf || part?.querySelector("dialog[open]")) {
      later(selector, REFRESH_AFTER_MS);
    } else if (part) {
      refreshed.set(selector, performance.now());
      part.dispatchEvent(new CustomEvent("trailer:refresh"));
    }
  };
  refreshes.set(selector, { timer: setTimeout(draw, pause), due: performance.now() + pause });
}
