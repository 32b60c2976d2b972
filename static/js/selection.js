// Several rows at once: what is chosen stays chosen while the list is redrawn, and every row answers
// for itself.

import { request } from "./actions.js";
import { ask } from "./confirm.js";
import { expectDeletion, refreshAll } from "./live.js";
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
  const failed = [];
  const queue = [...rows];
  const work = async () => {
    for (let row = queue.shift(); row; row = queue.shift()) {
      const problem = await one(action, row);
      if (problem) {
        failed.push([row, problem]);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  bar.removeAttribute("aria-busy");
  tell(action, rows, failed);
  chosen.clear();
  // What failed stays chosen, for another try.
  failed.forEach(([[resource, name]]) => chosen.set(resource, name));
  show();
  setTimeout(refreshAll, 300);
}

/** Returns what went wrong, or "". */
async function one(action, [resource, name]) {
  const [kind, id] = resource.split(":");
  all("data-row", resource).forEach((row) => row.classList.add("is-working"));
  if (action === "delete") {
    expectDeletion(resource);
  }
  try {
    const answer = await request(action, kind, id, name);
    if (action === "delete") {
      showDeleted(resource);
    } else if (answer?.allowed_actions) {
      showAllowed(resource, answer.allowed_actions);
    }
    return "";
  } catch (error) {
    return error.message;
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
  const done = rows.length - failed.length;
  if (done > 0) {
    const lost = new Set(failed.map(([[resource]]) => resource));
    const names = rows.filter(([resource]) => !lost.has(resource)).map(([, name]) => name);
    const shown = names.slice(0, MOST_NAMED).join(", ");
    const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
    const verb = action === "delete" ? "were deleted" : `will be ${DONE[action]}`;
    toast(done === 1 ? `${shown} ${verb.replace("were", "was")}.` : `${done} ${verb}: ${shown}${more}.`);
  }
  for (const [[, name], problem] of failed.slice(0, MOST_NAMED)) {
    toast(`${name}: ${problem}`, "error");
  }
  if (failed.length > MOST_NAMED) {
    toast(`${failed.length - MOST_NAMED} more could not be ${DONE[action]}; they are still selected.`, "error");
  }
}
