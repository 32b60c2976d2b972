// Dialogs that are filled in as they open: a name with the time in it, the effect of a restore or a rollback.

import { send } from "./api.js";
import { showPlan } from "./plan.js";

const LONGEST_NAME = 128;

export function startDialogs() {
  document.addEventListener("trailer:open", (event) => {
    const dialog = event.target;
    for (const input of dialog.querySelectorAll("[data-stamp]")) {
      const end = `-${stamp()}`;
      input.value = input.dataset.stamp.slice(0, LONGEST_NAME - end.length) + end;
    }
    const { restore, rollback, name } = event.detail.dataset;
    if (restore) {
      dialog.querySelector("[data-restore-name]").textContent = name;
      preview(dialog, { image: restore }, (change) => named(change, restore, name));
    } else if (rollback) {
      dialog.querySelector("[data-rollback-to]").textContent = rollback;
      preview(dialog, { revision: Number(rollback) });
    }
  });
}

/** `20260131-235959` in UTC, as the server names snapshots itself. */
function stamp() {
  const [day, time] = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").split("T");
  return `${day}-${time}`;
}

/** The image by its name here; the host knows it by its id. */
function named(change, id, name) {
  return change.field === "image" && String(change.to).includes(id) ? { ...change, to: name } : change;
}

/** What this would do is asked from the server, and only what was shown can be saved. */
async function preview(dialog, body, shown = (change) => change) {
  const form = dialog.querySelector("form");
  const save = form.querySelector("[data-save]");
  const [[field, wanted]] = Object.entries(body);
  form.elements[field].value = wanted;
  const keep = form.querySelector("[data-snapshot-first]");
  save.disabled = true;
  keep.hidden = true;
  delete form.dataset.lossShown;
  showPlan(form, null, "Asking what this would do…");
  try {
    const { revision } = await send("GET", form.dataset.plan.replace(/(rollback\/)?plan\/$/, ""));
    const plan = await send("POST", form.dataset.plan, body, { safe: true });
    if (form.elements[field].value === String(wanted)) {
      form.dataset.revision = revision;
      showPlan(form, { ...plan, changes: plan.changes.map(shown) });
      save.disabled = plan.changes.length === 0;
      keep.hidden = !(plan.loses_files && plan.can_snapshot);
      form.toggleAttribute("data-loss-shown", plan.loses_files);
    }
  } catch (error) {
    showPlan(form, null, error.message);
  }
}
