// Puts the state of one resource on the page: badge, stale mark, message, buttons, progress.

import { ago } from "./times.js";

const COLOURS = ["green", "blue", "amber", "red", "grey"];

export function showState(state) {
  const { resource } = state;
  for (const badge of all("data-resource", resource)) {
    showBadge(badge, state);
  }
  for (const mark of all("data-stale-for", resource)) {
    showStale(mark, state);
  }
  for (const message of all("data-message-for", resource)) {
    message.textContent = state.message || "";
    message.hidden = !state.message;
  }
  showAllowed(resource, state.allowed_actions);
  for (const bar of all("data-progress-for", resource)) {
    showProgress(bar, state);
  }
  for (const part of all("data-busy-for", resource)) {
    showWork(part, state);
  }
  document.dispatchEvent(new CustomEvent("trailer:state", { detail: state }));
}

/** A button at work is settled by the answer to its own request. */
export function showAllowed(resource, actions) {
  for (const button of all("data-target", resource)) {
    if (button.dataset.always === undefined && button.getAttribute("aria-busy") !== "true") {
      button.disabled = !actions.includes(button.dataset.action);
    }
  }
}

/** Removes what belongs to a deleted resource; says whether anything was on the page. */
export function showDeleted(resource) {
  const rows = [...all("data-row", resource)];
  for (const row of rows) {
    row.classList.add("row-leaving");
    setTimeout(() => row.remove(), 200);
  }
  return rows.length > 0;
}

export function all(attribute, value) {
  return document.querySelectorAll(`[${attribute}="${CSS.escape(value)}"]`);
}

function showBadge(badge, state) {
  badge.dataset.status = state.status;
  badge.textContent = state.status_label;
  for (const colour of COLOURS) {
    badge.classList.toggle(`badge-${colour}`, colour === state.colour);
  }
  badge.classList.toggle("is-busy", Boolean(state.busy));
  // A silent host says so by its own status.
  badge.classList.toggle("is-stale", state.fresh === false && !isHost(state));
}

function showStale(mark, state) {
  mark.hidden = state.fresh !== false || isHost(state);
  if (mark.hidden) {
    return;
  }
  const since = state.stale_since;
  const shown = mark.querySelector("time");
  if (!since) {
    if (!shown) {
      mark.textContent = "host not seen yet";
    }
    return;
  }
  if (!shown || shown.dateTime !== since) {
    mark.textContent = "stale since ";
    mark.append(ago(since));
  }
}

function showProgress(bar, state) {
  bar.hidden = !state.busy;
  if (typeof state.progress === "number") {
    bar.value = state.progress;
  } else {
    bar.removeAttribute("value");
  }
}

/** What is under way: how far it is, and at what. */
function showWork(part, state) {
  part.hidden = !state.busy;
  const percent = part.querySelector("[data-percent]");
  percent.textContent = typeof state.progress === "number" ? `${state.progress} %` : "";
  part.querySelector("[data-work]").textContent = state.message || state.status_label;
}

function isHost(state) {
  return state.resource.startsWith("host:");
}
