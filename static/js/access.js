// Access to an object or a host: a list of people and groups with their roles, or with what they may
// do there, saved as a whole.

import { send } from "./api.js";
import { clearErrors, showErrors } from "./errors.js";
import { toast } from "./toasts.js";

export function startAccess() {
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-grants]")) {
      event.preventDefault();
      save(event.target);
    }
  });
  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest("[data-grants]");
      if (form) {
        edited(form, event.target);
      }
    });
  }
}

function edited(form, control) {
  form.querySelector("[data-save]").disabled = false;
  form.querySelector("[data-nobody]").hidden = rows(form).length > 0;
  if (control.name === "subject") {
    const name = control.closest("[data-row-fields]").querySelector('[name="user"]');
    const isGroup = control.value === "group";
    name.placeholder = isGroup ? "group" : "username";
    name.toggleAttribute("list", isGroup);
    if (isGroup) {
      name.setAttribute("list", "known-groups");
    }
  }
}

function rows(form) {
  return [...form.querySelectorAll("[data-rows] > [data-row-fields]")];
}

function entry(row) {
  const value = (name) => row.querySelector(`[name="${name}"]`).value.trim();
  const who = { [value("subject")]: value("user") };
  if (!row.querySelector('[name="role"]')) {
    return { ...who, capabilities: [...row.querySelectorAll('[name="capabilities"]:checked')].map((box) => box.value) };
  }
  const rights = [...row.querySelectorAll('[name="rights"]')];
  return {
    ...who,
    role: value("role"),
    // Only grants on some kinds have them.
    ...(rights.length ? { rights: rights.filter((box) => box.checked).map((box) => box.value) } : {}),
    expires_at: until(row.querySelector('[name="expires_at"]')),
  };
}

/** To the end of that day here; a day that was not touched stays the exact moment it was. */
function until(input) {
  if (!input.value) {
    return null;
  }
  return input.value === input.defaultValue ? input.dataset.kept : new Date(`${input.value}T23:59:59`).toISOString();
}

async function save(form) {
  const button = form.querySelector("[data-save]");
  clearErrors(form);
  button.disabled = true;
  try {
    const answer = await send("PUT", form.dataset.grants, rows(form).map(entry));
    toast(`Access saved.${stillUsed(answer)}`);
    form.closest("[data-access]").dispatchEvent(new CustomEvent("trailer:saved"));
  } catch (error) {
    button.disabled = false;
    const fields = Object.entries(error.fields || {});
    // A group's name stands in the same input as a person's.
    const named = fields.map(([name, text]) => [name.replace(/\.group$/, ".user"), text]);
    const { first } = showErrors(form, Object.fromEntries(named));
    toast(error.message, "error");
    first?.focus?.();
  }
}

/** Workspaces that go on with what their people may not use any more. */
function stillUsed(answer) {
  const names = (Array.isArray(answer) ? answer : []).flatMap((one) => (one.still_uses || []).map(({ name }) => name));
  return names.length ? ` Still used by ${names.join(", ")}: nothing new is started with it; evict to stop what runs.` : "";
}
