// Buttons that do something to one object: asked for if needed, sent to the API, honest about failure.

import { send } from "./api.js";
import { ask } from "./confirm.js";
import { swapIcon } from "./icons.js";
import { expectDeletion, isLive, refreshAll, refreshFollowers, renewHead } from "./live.js";
import { agreeToLose, replaceLosses, unlessLost } from "./loss.js";
import { all, showAllowed, showDeleted } from "./states.js";
import { toast, toastLater } from "./toasts.js";

const COLLECTIONS = {
  workspace: "workspaces",
  image: "images",
  host: "hosts",
  network: "networks",
  volume: "volumes",
  registry: "registries",
  stack: "stacks",
  user: "users",
  group: "groups",
  token: "tokens",
  session: "sessions",
};
// What was asked for, where the page does not show it at once.
const ASKED = {
  extend: "It is kept running for now.",
  check: "The host compares the image with its registry now.",
  evict: "It is stopped, and kept away from it.",
};
const DELETED = {
  workspace: "Its container is stopped and removed. Volumes keep their data.",
  volume: "All data in it is removed from the host. This cannot be undone.",
  stack: "Its containers and networks are removed. Volumes keep their data, those of needs too.",
  host: "Trailer forgets the host; nothing on the machine is touched.",
};

// These may replace workspaces' containers, which throws away what those wrote. A workspace refuses when asked to;
// of the others a plan says beforehand which containers would go.
const REPLACING = {
  workspace: { start: "Start", redeploy: "Redeploy" },
  stack: { deploy: "Deploy", sync: "Sync", rollback: "Roll back" },
  image: { build: "Make again" },
};

// Cancelling is over when the host says so.
const cancelling = new Map();

export function startActions() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-action]");
    const other = event.target.closest("[data-press]");
    // A button that opens a dialog leaves the rest to the dialog's form.
    if (button && !button.disabled && button.dataset.open === undefined) {
      act(button);
    } else if (other) {
      document.querySelector(`[data-action="${other.dataset.press}"]`).click();
    }
  });
  document.addEventListener("trailer:state", (event) => ended(event.detail));
}

function ended({ resource, status, busy, message }) {
  const name = cancelling.get(resource);
  if (name === undefined || busy) {
    return;
  }
  cancelling.delete(resource);
  if (status === "cancelled") {
    toast(`${name}: cancelled. The host has ended the work.`);
  } else {
    toast(`${name} was ${status} before it could be cancelled. ${message || ""}`, "error");
  }
}

async function act(button) {
  const { action, target, name } = button.dataset;
  const [kind, id] = target.split(":");
  if (button.dataset.confirm && !(await agreed(button, kind))) {
    return;
  }
  const settle = busy(button);
  if (action === "delete") {
    expectDeletion(target);
  }
  let answer;
  try {
    const body = Object.fromEntries(new URLSearchParams(button.dataset.body));
    answer = await requestAsking(action, kind, id, name, body);
  } catch (error) {
    settle();
    toast(error.message, "error");
    return;
  }
  settle();
  if (answer === null && REPLACING[kind]?.[action]) {
    button.focus();
    return;
  }
  if (action === "cancel") {
    cancelling.set(target, name);
  }
  if (ASKED[action]) {
    toast(ASKED[action]);
  }
  if (answer && answer.allowed_actions) {
    showAllowed(target, answer.allowed_actions);
    moveRevision(answer);
  }
  if (action === "delete") {
    leave(target, name);
  } else if (kind === "host") {
    // Which of its buttons there are depends on whether it is enabled.
    renewHead();
    refreshAll();
  } else if (isLive()) {
    refreshFollowers(target);
  } else {
    refreshAll();
  }
}

function agreed(button, kind) {
  const { action, name, confirm } = button.dataset;
  const typing = confirm === "type";
  const verb = action[0].toUpperCase() + action.slice(1);
  return ask({
    title: `${verb} ${name}?`,
    text: typing ? DELETED[kind] : confirm,
    verb,
    name: typing ? name : "",
  });
}

/** Without a button of its own, as from the command palette: the toast says what was asked for. */
export async function carryOut(action, target, words) {
  const [kind, id] = target.split(":");
  try {
    const answer = await requestAsking(action, kind, id, words.replace(/^\S+ /, ""));
    if (answer === null) {
      return;
    }
    toast(`${words}: requested.`);
    if (answer?.allowed_actions) {
      showAllowed(target, answer.allowed_actions);
      moveRevision(answer);
    }
    refreshAll();
  } catch (error) {
    toast(error.message, "error");
  }
}

/** As `request`, asking first where files would be lost; null when the user does not go on. */
function requestAsking(action, kind, id, name, body) {
  const verb = REPLACING[kind]?.[action];
  if (!verb) {
    return request(action, kind, id, name, false, body);
  }
  if (kind !== "workspace") {
    return requestPlanned(verb, action, kind, id, name);
  }
  return unlessLost({ id, name }, verb, (refuses) => request(action, kind, id, name, refuses));
}

async function requestPlanned(verb, action, kind, id, name) {
  const losing = await replaceLosses(`/api/v1/${COLLECTIONS[kind]}/${id}/${action}/plan/`, {});
  const agreed = losing.length === 0 || (await agreeToLose(`${verb} ${name}?`, losing, { isTitle: true }));
  return agreed ? request(action, kind, id, name) : null;
}

/** Sends the action to the API. With `refuses` it is not done where it would throw files away. */
export function request(action, kind, id, name, refuses = false, body = {}) {
  const path = `/api/v1/${COLLECTIONS[kind]}/${id}/`;
  if (action === "delete") {
    const query = kind === "volume" ? `?confirm=${encodeURIComponent(name)}` : "";
    return send("DELETE", path + query);
  }
  if (action === "enable" || action === "disable") {
    return send("PATCH", path, { enabled: action === "enable" });
  }
  return send("POST", `${path}${action}/`, refuses ? { ...body, refuse_loss: true } : body);
}

function leave(target, name) {
  const page = all("data-page-of", target)[0];
  if (page) {
    toastLater(`${name} was deleted.`);
    location.assign(page.dataset.goneTo);
    return;
  }
  toast(`${name} was deleted.`);
  showDeleted(target);
  setTimeout(refreshAll, 300);
}

/** Our own action must not make an edit on the same page look like a conflict. */
function moveRevision({ id, revision }) {
  for (const form of document.querySelectorAll("form[data-revision]")) {
    if (form.dataset.api.includes(id)) {
      form.dataset.revision = revision;
    }
  }
}

/** Shows the button at work; the function it returns puts it back. */
function busy(button) {
  const svg = button.querySelector(".icon");
  const before = svg.querySelector("use").getAttribute("href").split("#")[1];
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  swapIcon(svg, "loader-circle");
  return () => {
    button.removeAttribute("aria-busy");
    swapIcon(svg, before);
    button.disabled = false;
  };
}
