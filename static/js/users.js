// The users page: one form makes and changes a user, another a group; accounts are switched off and on.

import { send } from "./api.js";
import { ask } from "./confirm.js";
import { clearErrors } from "./errors.js";
import { refreshAll } from "./live.js";
import { toast } from "./toasts.js";

export function startUsers() {
  document.addEventListener("trailer:open", (event) => {
    const form = event.target.querySelector("[data-user-form], [data-group-form]");
    if (form) {
      fill(form, event.detail.dataset);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-user-active]");
    if (button) {
      switchActive(button);
    }
  });
}

/** Without an object to edit the form makes a new one. */
function fill(form, given) {
  const isUser = form.dataset.userForm !== undefined;
  const noun = isUser ? "user" : "group";
  const editing = given.edit !== undefined;
  clearErrors(form);
  form.reset();
  form.dataset.api = `/api/v1/${noun}s/${editing ? `${given.edit}/` : ""}`;
  form.dataset.method = editing ? "PATCH" : "POST";
  form.dataset.done = editing ? "Saved." : `${isUser ? "User" : "Group"} added.`;
  const name = isUser ? given.username : given.name;
  form.querySelector("h2").textContent = editing ? `Edit ${name}` : `New ${noun}`;
  form.querySelector('[type="submit"]').textContent = editing ? "Save changes" : `Add ${noun}`;
  if (!editing) {
    return;
  }
  if (isUser) {
    fillUser(form, given);
  } else {
    form.elements.name.value = name;
  }
}

function fillUser(form, given) {
  form.elements.username.value = given.username;
  form.elements.email.value = given.email;
  form.elements.is_admin.checked = given.admin === "yes";
  form.elements.is_active.checked = given.active === "yes";
  const groups = given.groups.trim().split(/\s+/);
  for (const box of form.querySelectorAll("[data-group]")) {
    box.checked = groups.includes(box.dataset.group);
  }
}

async function switchActive(button) {
  const { name, target, userActive } = button.dataset;
  const active = userActive === "yes";
  const question = {
    title: `Deactivate ${name}?`,
    text: "They are signed out everywhere, and their tokens stop working. What they own stays and runs on.",
    verb: "Deactivate",
  };
  if (!active && !(await ask(question))) {
    return;
  }
  button.disabled = true;
  try {
    await send("PATCH", `/api/v1/users/${target.split(":")[1]}/`, { is_active: active });
    toast(active ? `${name} may sign in again.` : `${name} was deactivated.`);
    refreshAll();
  } catch (error) {
    toast(error.message, "error");
  } finally {
    button.disabled = false;
  }
}
