// Several rows at once: what is chosen stays chosen while the list is redrawn, and every row answers
// for itself.

import { request } from "./actions.js";
import { send } from "./api.js";
import { ask } from "./confirm.js";
import { expectDeletion, refreshAll } from "./live.js";
import { agreeToLose, isLoss } from "./loss.js";
import { all, showAllowed, showDeleted } from "./states.js";
import { clearErrorToasts, toast } from "./toasts.js";

// More at once would only queue up at the server.
const AT_ONCE = 4;
const MOST_NAMED = 8;
const DONE = { start: "started", stop: "stopped", redeploy: "redeployed", delete: "deleted" };
// Name by resource.
const chosen = new Map();

export function startSelection() {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select]")) {
      choose(event.target);
      show();
    } else if (event.target.matches("[data-select-all]")) {
      for (const box of document.querySelectorAll("[data-select]")) {
        box.checked = event.target.checked;
        choose(box);
      }
      show();
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-selection-action]");
    if (button) {
      act(button.dataset.selectionAction);
    } else if (event.target.closest("[data-selection-clear]")) {
      clear();
    }
  });
  document.addEventListener("htmx:afterSettle", show);
}

function choose(box) {
  if (box.checked) {
    chosen.set(box.dataset.select, box.dataset.name);
  } else {
    chosen.delete(box.dataset.select);
  }
}

function clear() {
  chosen.clear();
  show();
}

function show() {
  const bar = document.querySelector("[data-selection]");
  if (!bar) {
    return;
  }
  const boxes = [...document.querySelectorAll("[data-select]")];
  for (const box of boxes) {
    box.checked = chosen.has(box.dataset.select);
    box.closest("tr").classList.toggle("is-chosen", box.checked);
  }
  const everything = document.querySelector("[data-select-all]");
  if (everything) {
    const here = boxes.filter((box) => box.checked).length;
    everything.checked = here > 0 && here === boxes.length;
    everything.indeterminate = here > 0 && here < boxes.length;
  }
  bar.hidden = chosen.size === 0;
  bar.querySelector("[data-selection-count]").textContent = `${chosen.size} selected`;
}

async function act(action) {
  const rows = [...chosen];
  if (action === "delete" && !(await agreed(rows))) {
    return;
  }
  clearErrorToasts();
  const bar = document.querySelector("[data-selection]");
  bar.setAttribute("aria-busy", "true");
  const { done, failed } = await carriedOut(action, rows);
  bar.removeAttribute("aria-busy");
  tell(action, done, failed);
  done.forEach(([resource]) => chosen.delete(resource));
  show();
  setTimeout(refreshAll, 300);
}

/** What was done and what failed; rows in neither were not agreed to. Those and the failed stay chosen. */
async function carriedOut(action, rows) {
  const losing = action === "redeploy" ? await losses(rows) : [];
  if (losing.length > 0 && !(await agreeToLose("Redeploy", losing))) {
    return { done: [], failed: [] };
  }
  const failed = await each(rows, (row) => one(action, row, action === "start"));
  const refused = failed.filter(([, error]) => isLoss(error));
  const others = failed.filter(([, error]) => !isLoss(error));
  const notDone = new Set(failed.map(([row]) => row));
  const done = rows.filter((row) => !notDone.has(row));
  if (refused.length > 0 && (await agreeToLose("Start", refused.map(([row, error]) => item(row, error.body))))) {
    const again = await each(refused.map(([row]) => row), (row) => one(action, row));
    const failedAgain = new Set(again.map(([row]) => row));
    done.push(...refused.map(([row]) => row).filter((row) => !failedAgain.has(row)));
    others.push(...again);
  }
  return { done, failed: others };
}

/** Which of them a redeploy would take files from. One that cannot be asked says why when it is redeployed. */
async function losses(rows) {
  const found = [];
  await each(rows, async (row) => {
    const [, id] = row[0].split(":");
    const plan = await send("POST", `/api/v1/workspaces/${id}/redeploy/plan/`, {}, { safe: true });
    if (plan.loses_files) {
      found.push(item(row, plan));
    }
  });
  return found.sort((left, right) => left.name.localeCompare(right.name, "en", { numeric: true }));
}

function item([resource, name], loss) {
  return { id: resource.split(":")[1], name, loss };
}

/** A few at a time; returns those that failed, each with its error. */
async function each(rows, work) {
  const failed = [];
  const queue = [...rows];
  const worker = async () => {
    for (let row = queue.shift(); row; row = queue.shift()) {
      try {
        await work(row);
      } catch (error) {
        failed.push([row, error]);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return failed;
}

async function one(action, [resource, name], refuses = false) {
  const [kind, id] = resource.split(":");
  all("data-row", resource).forEach((row) => row.classList.add("is-working"));
  if (action === "delete") {
    expectDeletion(resource);
  }
  try {
    const answer = await request(action, kind, id, name, refuses);
    if (action === "delete") {
      showDeleted(resource);
    } else if (answer?.allowed_actions) {
      showAllowed(resource, answer.allowed_actions);
    }
  } finally {
    all("data-row", resource).forEach((row) => row.classList.remove("is-working"));
  }
}

function agreed(rows) {
  const names = rows.slice(0, MOST_NAMED).map(([, name]) => name);
  const more = rows.length > MOST_NAMED ? ` and ${rows.length - MOST_NAMED} more` : "";
  const title = rows.length === 1 ? `Delete ${names[0]}?` : `Delete ${rows.length} workspaces?`;
  return ask({
    title,
    text: `${names.join(", ")}${more}: their containers are stopped and removed. Volumes keep their data.`,
    verb: "Delete",
    name: rows.length === 1 ? names[0] : `delete ${rows.length}`,
  });
}

function tell(action, rows, failed) {
  const done = rows.length;
  if (done > 0) {
    const names = rows.map(([, name]) => name);
    const shown = names.slice(0, MOST_NAMED).join(", ");
    const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
    const verb = action === "delete" ? "were deleted" : `will be ${DONE[action]}`;
    toast(done === 1 ? `${shown} ${verb.replace("were", "was")}.` : `${done} ${verb}: ${shown}${more}.`);
  }
  for (const [[, name], error] of failed.slice(0, MOST_NAMED)) {
    toast(`${name}: ${error.message}`, "error");
  }
  if (failed.length > MOST_NAMED) {
    toast(`${failed.length - MOST_NAMED} more could not be ${DONE[action]}; they are still selected.`, "error");
  }
}
