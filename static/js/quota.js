// The quota of a user or a group: read when its dialog opens, with what is taken beside each limit.

import { send } from "./api.js";
import { clearErrors } from "./errors.js";
import { exactSize } from "./sizes.js";
import { toast } from "./toasts.js";

export function startQuota() {
  document.addEventListener("trailer:open", (event) => {
    const form = event.target.querySelector("[data-quota-form]");
    if (form) {
      fill(form, event.detail.dataset);
    }
  });
}

async function fill(form, { quotaOf, name }) {
  clearErrors(form);
  form.reset();
  form.dataset.api = `/api/v1/${quotaOf}/quota/`;
  form.querySelector("h2").textContent = `Quota of ${name}`;
  const button = form.querySelector('[type="submit"]');
  // What is shown replaces all limits: nothing may be saved before they are here.
  button.disabled = true;
  try {
    const { limits, used } = await send("GET", form.dataset.api);
    for (const [resource, limit] of Object.entries(limits)) {
      const input = form.elements[resource];
      const shown = (value) => (resource.endsWith("_bytes") ? exactSize(value) : String(value));
      input.value = limit === null ? "" : shown(limit);
      input.title = `${shown(used[resource])} in use`;
    }
    button.disabled = false;
  } catch (error) {
    toast(error.message, "error");
  }
}
