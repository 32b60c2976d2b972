// Dialogs that are filled in as they open: a name with the time in it, the effect of a restore.

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
    if (event.detail.dataset.restore) {
      fillRestore(dialog, event.detail.dataset);
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

/** What restoring would do is asked from the server, and only what was shown can be saved. */
async function fillRestore(dialog, { restore, name }) {
  const form = dialog.querySelector("form");
  const save = form.querySelector("[data-save]");
  dialog.querySelector("[data-restore-name]").textContent = name;
  form.elements.image.value = restore;
  save.disabled = true;
  showPlan(form, null, "Asking what this would do…");
  try {
    const { revision } = await send("GET", form.dataset.api);
    const plan = await send("POST", form.dataset.plan, { image: restore }, { safe: true });
    if (form.elements.image.value === restore) {
      form.dataset.revision = revision;
      showPlan(form, { ...plan, changes: plan.changes.map((change) => named(change, restore, name)) });
      save.disabled = plan.changes.length === 0;
    }
  } catch (error) {
    showPlan(form, null, error.message);
  }
}
