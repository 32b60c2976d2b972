// A stack's page: test of its repository, rollback to a chosen revision, webhook secret, encryption.

import { send } from "./api.js";
import { ask } from "./confirm.js";
import { collect } from "./fields.js";
import { refreshAll, renewHead } from "./live.js";
import { agreeToLose, replaceLosses } from "./loss.js";
import { renewTab } from "./tabs.js";
import { toast } from "./toasts.js";

const SECRET_BYTES = 32;
const SHORT = 8;

export function startStack() {
  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    if (at("[data-test-source]")) {
      during(at("[data-test-source]"), testSource);
    } else if (at("[data-rollback-to]")) {
      during(at("[data-rollback-to]"), rollBack);
    } else if (at("[data-new-webhook-secret]")) {
      during(at("[data-new-webhook-secret]"), makeSecret);
    } else if (at("[data-forget-credential]")) {
      during(at("[data-forget-credential]"), forgetCredential);
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-encrypt]")) {
      event.preventDefault();
      during(event.target, encrypt);
    }
  });
  document.addEventListener("htmx:afterSettle", showEnds);
  showEnds();
}

async function during(element, work) {
  if (element.getAttribute("aria-busy") === "true") {
    return;
  }
  element.setAttribute("aria-busy", "true");
  try {
    await work(element);
  } catch (error) {
    toast(error.message, "error");
  } finally {
    element.removeAttribute("aria-busy");
  }
}

async function testSource(button) {
  const form = button.form;
  const { repository, branch, path, credential } = collect(form);
  const place = form.querySelector("[data-test-result]");
  place.replaceChildren(line("muted", "Asking the repository…"));
  const body = { repository, branch: branch || "main", path, credential };
  if (button.dataset.testSource) {
    body.stack = button.dataset.testSource;
  }
  try {
    showFound(place, await send("POST", "/api/v1/stacks/check/", body, { safe: true }));
  } catch (error) {
    place.replaceChildren(notice("red", error.message));
  }
}

function showFound(place, found) {
  const about = `${found.file_name} at ${found.commit.slice(0, SHORT)} by ${found.author}: ${found.commit_message.split("\n")[0]}`;
  if (found.problem) {
    place.replaceChildren(notice("amber", `The repository can be read, its file can't be used: ${found.problem}`), line("muted", about));
    return;
  }
  const needs = found.needs.length > 0 ? `; needs: ${found.needs.join(", ")}` : "";
  place.replaceChildren(
    notice("green", `The repository can be read. Services: ${found.services.join(", ")}${needs}.`),
    line("muted", about),
  );
}

function notice(colour, words) {
  const box = line(`notice notice-${colour}`, words);
  box.dataset.verdict = colour;
  return box;
}

function line(classes, words) {
  const element = document.createElement("p");
  element.className = `${classes} small`;
  element.textContent = words;
  return element;
}

async function rollBack(button) {
  const { rollbackTo, stack, name, commit } = button.dataset;
  const text = `Revision ${rollbackTo} (${commit}) is deployed again. The stack stays there until somebody deploys.`;
  if (!(await ask({ title: `Roll ${name} back?`, text, verb: "Roll back", name: "" }))) {
    return;
  }
  const body = { revision: Number(rollbackTo) };
  const losing = await replaceLosses(`/api/v1/stacks/${stack}/rollback/plan/`, body);
  if (losing.length > 0 && !(await agreeToLose(`Roll ${name} back?`, losing, { isTitle: true }))) {
    return;
  }
  await send("POST", `/api/v1/stacks/${stack}/rollback/`, body);
  toast("The rollback was requested.");
  refreshAll();
}

/** Made here, so that it is on the page without ever being read back from the server. */
async function makeSecret(button) {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  const secret = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const answer = await send("PATCH", `/api/v1/stacks/${button.dataset.newWebhookSecret}/`, { webhook_secret: secret });
  for (const form of document.querySelectorAll("form[data-revision]")) {
    form.dataset.revision = answer.revision;
  }
  const place = document.querySelector("[data-webhook-secret]");
  place.querySelector("code").textContent = secret;
  place.hidden = false;
  document.querySelector("[data-webhook-state]").textContent = "Copy it now: it is not shown again.";
}

async function forgetCredential(button) {
  await send("PATCH", `/api/v1/stacks/${button.dataset.forgetCredential}/`, { credential: null });
  toast("The credential was forgotten.");
  renewTab();
  renewHead();
}

async function encrypt(form) {
  const input = form.elements.value;
  const answer = await send("POST", `/api/v1/stacks/${form.dataset.encrypt}/encrypt/`, { value: input.value }, { safe: true });
  input.value = "";
  const place = document.querySelector("[data-encrypted]");
  place.querySelector("code").textContent = `{secure: "${answer.secure}"}`;
  place.hidden = false;
}

/** The newest line of a sync's log is the one that is read. */
function showEnds() {
  for (const log of document.querySelectorAll(".sync-lines")) {
    log.scrollTop = log.scrollHeight;
  }
}
