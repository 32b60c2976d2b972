// The second factor of one's own account: set up, confirmed with a first code, renewed, turned off.

import { send } from "./api.js";
import { clearErrors, showErrors } from "./errors.js";
import { toast, toastLater } from "./toasts.js";

const ADDRESS = "/api/v1/me/second-factor/";

export function startSecondFactor() {
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-second-factor]")) {
      event.preventDefault();
      begin(event.target, event.submitter.dataset.factor);
    } else if (event.target.matches("[data-factor-confirm]")) {
      event.preventDefault();
      confirm(event.target);
    }
  });
}

async function begin(form, what) {
  const password = form.elements.second_factor_password;
  const body = { current_password: password.value };
  const answer = await tried(form, () => send("POST", ADDRESS + what, body), ({ current_password }) => (
    current_password ? { second_factor_password: current_password } : {}
  ));
  if (!answer.done) {
    return;
  }
  password.value = "";
  if (what === "remove/") {
    toastLater("The second factor is off.");
    location.reload();
  } else if (what === "recovery-codes/") {
    showCodes(answer.content.recovery_codes);
  } else {
    showKey(answer.content);
  }
}

function showKey({ secret, picture }) {
  const dialog = document.getElementById("factor-begin");
  dialog.querySelector("[data-factor-picture]").src = picture;
  dialog.querySelector("[data-factor-secret]").textContent = secret;
  dialog.showModal();
  dialog.querySelector("input").focus();
}

async function confirm(form) {
  const body = { code: form.elements.code.value };
  const answer = await tried(form, () => send("POST", `${ADDRESS}confirm/`, body), (fields) => fields);
  if (answer.done) {
    form.closest("dialog").close();
    form.reset();
    showCodes(answer.content.recovery_codes);
  }
}

/** The page is read again afterwards, so that nothing of the codes stays in it. */
function showCodes(codes) {
  const dialog = document.getElementById("factor-codes");
  dialog.querySelector("[data-factor-codes]").textContent = codes.join("\n");
  dialog.addEventListener("close", () => location.reload(), { once: true });
  dialog.showModal();
}

async function tried(form, act, named) {
  const buttons = form.querySelectorAll('[type="submit"]');
  clearErrors(form);
  for (const button of buttons) {
    button.disabled = true;
  }
  try {
    return { done: true, content: await act() };
  } catch (error) {
    const { first } = showErrors(form, named(error.fields || {}));
    toast(error.message, "error");
    first?.focus();
    return { done: false };
  } finally {
    for (const button of buttons) {
      button.disabled = false;
    }
  }
}
