// The profile page: a new token's key is shown once and then forgotten; signing out everywhere else.

import { send } from "./api.js";
import { ask } from "./confirm.js";
import { clearErrors, showErrors } from "./errors.js";
import { collect } from "./fields.js";
import { refreshAll } from "./live.js";
import { toast } from "./toasts.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export function startTokens() {
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-token-form]")) {
      event.preventDefault();
      make(event.target);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-end-others]");
    if (button) {
      endOthers(button);
    }
  });
}

async function make(form) {
  const button = form.querySelector('[type="submit"]');
  const body = collect(form);
  const days = Number(body.expires_at);
  body.expires_at = days ? new Date(Date.now() + days * DAY_MS).toISOString() : null;
  clearErrors(form);
  button.disabled = true;
  try {
    const { key } = await send("POST", "/api/v1/tokens/", body);
    form.closest("dialog").close();
    form.reset();
    showKey(key);
    refreshAll();
  } catch (error) {
    const { first } = showErrors(form, error.fields || {});
    toast(error.message, "error");
    first?.focus();
  } finally {
    button.disabled = false;
  }
}

function showKey(key) {
  const dialog = document.getElementById("token-key");
  const place = dialog.querySelector("[data-token-key]");
  place.textContent = key;
  dialog.addEventListener("close", () => {
    place.textContent = "";
  }, { once: true });
  dialog.showModal();
}

async function endOthers(button) {
  const question = {
    title: "Sign out everywhere else?",
    text: "Every other browser and every token that was made by signing in must sign in again. Named tokens stay.",
    verb: "Sign out",
  };
  if (!(await ask(question))) {
    return;
  }
  button.disabled = true;
  try {
    const { sessions, tokens } = await send("POST", "/api/v1/sessions/end-others/", {});
    const ended = sessions + tokens;
    toast(ended ? `Signed out in ${ended} other place${ended > 1 ? "s" : ""}.` : "You were signed in nowhere else.");
    refreshAll();
  } catch (error) {
    toast(error.message, "error");
  } finally {
    button.disabled = false;
  }
}
