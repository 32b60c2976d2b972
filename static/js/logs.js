// Log viewers of builds: read by offset, followed while the build runs, plain text and nothing else.

import { read } from "./api.js";

const PAUSE_MS = 700;
const AFTER_FAILURE_MS = 3000;
// Older text leaves the page beyond this; the whole log stays on the server.
const MOST_CHARACTERS = 2_000_000;
// Colours and cursor movements of terminals.
const ESCAPES = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

export function startLogs() {
  follow(document);
  document.addEventListener("htmx:load", (event) => follow(event.target));
  document.addEventListener("htmx:afterSettle", showNewestBuild);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-log-follow]");
    if (button) {
      const viewer = button.closest("[data-log]");
      setFollowing(viewer, button.getAttribute("aria-pressed") !== "true");
    }
  });
}

function follow(root) {
  for (const viewer of root.querySelectorAll('[data-log^="build:"]:not([data-followed])')) {
    viewer.dataset.followed = "";
    const body = viewer.querySelector("[data-log-text]");
    body.addEventListener("scroll", () => setFollowing(viewer, atEnd(body), false), { passive: true });
    run(viewer);
  }
}

/** Reads one build's log to its end; stops when the viewer is given another build. */
async function run(viewer) {
  const name = viewer.dataset.log;
  const body = viewer.querySelector("[data-log-text]");
  const decoder = new TextDecoder();
  let offset = 0;
  body.replaceChildren();
  while (viewer.isConnected && viewer.dataset.log === name) {
    let complete;
    try {
      const answer = await read(`/api/v1/builds/${name.slice("build:".length)}/log/?offset=${offset}`);
      append(viewer, decoder.decode(await answer.arrayBuffer(), { stream: true }));
      const next = Number(answer.headers.get("Trailer-Log-Offset") ?? offset);
      complete = answer.headers.get("Trailer-Log-Complete") === "true" && next === offset;
      const moved = next !== offset;
      offset = next;
      say(viewer, complete ? "complete" : "live");
      if (moved && !complete) {
        continue;
      }
    } catch (error) {
      say(viewer, error.message);
      await pause(AFTER_FAILURE_MS);
      continue;
    }
    if (complete) {
      if (body.textContent === "") {
        say(viewer, "complete, without output");
      }
      return;
    }
    await pause(PAUSE_MS);
  }
}

function append(viewer, text) {
  if (!text) {
    return;
  }
  const body = viewer.querySelector("[data-log-text]");
  const clean = text.replace(ESCAPES, "").replace(/\r\n?/g, "\n");
  body.append(document.createTextNode(clean));
  let length = Number(viewer.dataset.characters || 0) + clean.length;
  while (length > MOST_CHARACTERS && body.childNodes.length > 1) {
    length -= body.firstChild.length;
    body.firstChild.remove();
  }
  viewer.dataset.characters = length;
  if (viewer.querySelector("[data-log-follow]").getAttribute("aria-pressed") === "true") {
    body.scrollTop = body.scrollHeight;
  }
}

/** A viewer of the newest build moves on when a newer one begins. */
function showNewestBuild() {
  const newest = document.querySelector("[data-newest-build]");
  const viewer = document.querySelector("[data-log][data-newest-of]");
  if (!newest || !viewer || !newest.dataset.newestBuild) {
    return;
  }
  const name = `build:${newest.dataset.newestBuild}`;
  if (viewer.dataset.log !== name) {
    viewer.dataset.log = name;
    viewer.dataset.characters = 0;
    viewer.querySelector("[data-log-number]").textContent = newest.dataset.newestNumber;
    setFollowing(viewer, true);
    run(viewer);
  }
}

function setFollowing(viewer, on, jump = true) {
  viewer.querySelector("[data-log-follow]").setAttribute("aria-pressed", String(on));
  if (on && jump) {
    const body = viewer.querySelector("[data-log-text]");
    body.scrollTop = body.scrollHeight;
  }
}

function atEnd(body) {
  return body.scrollHeight - body.scrollTop - body.clientHeight < 24;
}

function say(viewer, text) {
  viewer.querySelector("[data-log-state]").textContent = text;
}

function pause(time) {
  return new Promise((resolve) => {
    setTimeout(resolve, time);
  });
}
