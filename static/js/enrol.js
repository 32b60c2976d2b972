// The one-time line that connects a host's agent; the dialog tells when the agent has come.

import { send } from "./api.js";
import { clearErrors, showErrors } from "./errors.js";
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
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-enrol-address]");
    if (form) {
      event.preventDefault();
      renew(form);
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
    const enrolment = await enrol(button.dataset.enrol, {});
    const dialog = document.getElementById("enrol");
    clearErrors(dialog.querySelector("[data-enrol-address]"));
    fill(dialog, enrolment);
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

/** A line with the address that was typed. */
async function renew(form) {
  const button = form.querySelector("button");
  const typed = form.elements.server_url.value.trim();
  clearErrors(form);
  button.disabled = true;
  try {
    fill(document.getElementById("enrol"), await enrol(form.dataset.enrolAddress, typed ? { server_url: typed } : {}));
  } catch (error) {
    const { homeless, first } = showErrors(form, error.fields || {});
    if (!first || homeless.length) {
      toast(error.message, "error");
    }
  } finally {
    button.disabled = false;
  }
}

function enrol(host, body) {
  return send("POST", `/api/v1/hosts/${host}/enrolment/`, body);
}

function fill(dialog, enrolment) {
  dialog.querySelector("[data-enrol-command]").textContent = enrolment.command;
  say(dialog.querySelector("[data-enrol-problem]"), enrolment.problem);
  say(dialog.querySelector("[data-enrol-warning]"), enrolment.server_warning);
  dialog.querySelector("[data-enrol-answers]").hidden = !enrolment.server_answers;
  const address = dialog.querySelector("[name=server_url]");
  // Who came by another address than a useless one knows a better one already.
  const mayBeBetter = enrolment.server_answers === null && enrolment.server_warning && !isLoopback(location.hostname);
  address.value = mayBeBetter ? location.origin : enrolment.server_url;
  const machines = Object.keys(enrolment.digests);
  const isLoaded = machines.length > 0;
  dialog.querySelector("[data-enrol-loaded]").hidden = !isLoaded;
  dialog.querySelector("[data-enrol-machines]").textContent = machines.join(" and ");
  // Words after a line that loads the image are options of its `docker run`.
  dialog.querySelector("[data-enrol-gpus]").textContent = isLoaded ? "… trailer --gpus all" : "docker run --gpus all -d …";
  dialog.querySelector("[data-enrol-until]").textContent = new Date(enrolment.expires_at).toLocaleTimeString();
}

function say(notice, sentence) {
  notice.hidden = !sentence;
  notice.querySelector("span").textContent = sentence;
}

function isLoopback(name) {
  return name === "localhost" || name.endsWith(".localhost") || name.startsWith("127.") || name === "[::1]";
}

function show(wait, state) {
  const [icon, words] = SHOWN[state];
  wait.classList.toggle("is-waiting", state === "waiting");
  wait.classList.toggle("notice-green", state === "connected");
  swapIcon(wait.querySelector(".icon"), icon);
  wait.querySelector("span").textContent = words;
}
