// The one-time line that connects a host's agent; the dialog tells when the agent has come.

import { send } from "./api.js";
import { swapIcon } from "./icons.js";
import { all } from "./states.js";
import { toast } from "./toasts.js";

const SHOWN = {
  waiting: ["loader-circle", "Waiting for the agent…"],
  connected: ["circle-check", "Connected: the agent of this host is online."],
  // Nothing tells from here whether the one that is heard is the new one.
  already: ["plug", "An agent of this host is online already. With this line another one takes its place."],
};

export function startEnrol() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-enrol]");
    if (button) {
      open(button);
    }
  });
  document.addEventListener("trailer:state", (event) => {
    const wait = document.querySelector("[data-enrol-wait].is-waiting");
    if (wait && wait.dataset.enrolWait === event.detail.resource && event.detail.status === "online") {
      show(wait, "connected");
    }
  });
}

async function open(button) {
  button.disabled = true;
  try {
    const enrolment = await send("POST", `/api/v1/hosts/${button.dataset.enrol}/enrolment/`, {});
    const dialog = document.getElementById("enrol");
    dialog.querySelector("[data-enrol-command]").textContent = enrolment.command;
    const problem = dialog.querySelector("[data-enrol-problem]");
    problem.hidden = !enrolment.problem;
    problem.querySelector("span").textContent = enrolment.problem;
    const isLoaded = Object.keys(enrolment.digests).length > 0;
    dialog.querySelector("[data-enrol-loaded]").hidden = !isLoaded;
    // Words after a line that loads the image are options of its `docker run`.
    dialog.querySelector("[data-enrol-gpus]").textContent = isLoaded ? "… trailer --gpus all" : "docker run --gpus all -d …";
    dialog.querySelector("[data-enrol-until]").textContent = new Date(enrolment.expires_at).toLocaleTimeString();
    const wait = dialog.querySelector("[data-enrol-wait]");
    const isOnline = all("data-resource", wait.dataset.enrolWait)[0]?.dataset.status === "online";
    show(wait, isOnline ? "already" : "waiting");
    dialog.showModal();
  } catch (error) {
    toast(error.message, "error");
  } finally {
    button.disabled = false;
  }
}

function show(wait, state) {
  const [icon, words] = SHOWN[state];
  wait.classList.toggle("is-waiting", state === "waiting");
  wait.classList.toggle("notice-green", state === "connected");
  swapIcon(wait.querySelector(".icon"), icon);
  wait.querySelector("span").textContent = words;
}
