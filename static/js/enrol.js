// The one-time line that connects a host's agent; the dialog tells when the agent has come.

import { send } from "./api.js";
import { swapIcon } from "./icons.js";
import { toast } from "./toasts.js";

export function startEnrol() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-enrol]");
    if (button) {
      open(button);
    }
  });
  document.addEventListener("trailer:state", (event) => {
    const wait = document.querySelector("[data-enrol-wait]");
    if (wait && wait.dataset.enrolWait === event.detail.resource && event.detail.status === "online") {
      connected(wait);
    }
  });
}

async function open(button) {
  button.disabled = true;
  try {
    const enrolment = await send("POST", `/api/v1/hosts/${button.dataset.enrol}/enrolment/`, {});
    const dialog = document.getElementById("enrol");
    dialog.querySelector("[data-enrol-command]").textContent = enrolment.command;
    dialog.querySelector("[data-enrol-until]").textContent = new Date(enrolment.expires_at).toLocaleTimeString();
    dialog.showModal();
  } catch (error) {
    toast(error.message, "error");
  } finally {
    button.disabled = false;
  }
}

function connected(wait) {
  wait.classList.remove("is-waiting");
  wait.classList.add("notice-green");
  swapIcon(wait.querySelector(".icon"), "circle-check");
  wait.querySelector("span").textContent = "Connected: the agent of this host is online.";
}
