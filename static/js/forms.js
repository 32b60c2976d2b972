// Forms that speak to the REST API: collected, sent, and the API's own errors shown inline.

import { send } from "./api.js";
import { clearConflict, showConflict } from "./conflict.js";
import { clearErrors, showErrors } from "./errors.js";
import { collect, difference } from "./fields.js";
import { refreshAll, renewHead } from "./live.js";
import { agreeToLose, replaceLosses, unlessLost } from "./loss.js";
import { newImageFirst } from "./new-image.js";
import { showPlan } from "./plan.js";
import { renewTab } from "./tabs.js";
import { clearErrorToasts, toast, toastLater } from "./toasts.js";
import { workVolumeFirst } from "./work-volume.js";

const PLAN_AFTER_MS = 350;
// The values each form had when it came onto the page.
const originals = new WeakMap();
const timers = new WeakMap();

export function startForms() {
  remember(document);
  document.addEventListener("htmx:load", (event) => remember(event.target));
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-api]")) {
      event.preventDefault();
      submit(event.target);
    }
  });
  // What was typed is not lost by a slip; after saving, nothing is left to lose.
  window.addEventListener("beforeunload", (event) => {
    if ([...document.querySelectorAll("form[data-changed-only]")].some(isEdited)) {
      event.preventDefault();
    }
  });
  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest("form[data-changed-only]");
      if (form) {
        edited(form);
      }
    });
  }
}

function remember(root) {
  for (const form of root.querySelectorAll("form[data-changed-only]")) {
    if (!originals.has(form)) {
      originals.set(form, collect(form));
    }
  }
}

/** Whether the form holds changes that were not saved. */
export function isEdited(form) {
  return originals.has(form) && Object.keys(changes(form)).length > 0;
}

function changes(form) {
  return difference(originals.get(form), collect(form));
}

function edited(form) {
  const changed = changes(form);
  form.querySelector("[data-save]").disabled = Object.keys(changed).length === 0;
  if (form.dataset.plan) {
    clearTimeout(timers.get(form));
    timers.set(form, setTimeout(() => preview(form, changes(form)), PLAN_AFTER_MS));
  }
}

async function preview(form, changed) {
  if (Object.keys(changed).length === 0) {
    clearErrors(form);
    showPlan(form, null);
    return;
  }
  try {
    const plan = await send("POST", form.dataset.plan, changed, { safe: true });
    if (isStill(form, changed)) {
      clearErrors(form);
      showPlan(form, plan);
    }
  } catch (error) {
    if (isStill(form, changed)) {
      showErrors(form, error.fields);
      showPlan(form, null, error.message);
    }
  }
}

/** Whether an answer about these changes is still about what the form holds. */
function isStill(form, changed) {
  return JSON.stringify(changes(form)) === JSON.stringify(changed);
}

async function submit(form) {
  const button = form.querySelector('[type="submit"]');
  if (button.getAttribute("aria-busy") === "true") {
    return;
  }
  clearErrors(form);
  clearConflict(form);
  clearErrorToasts();
  button.setAttribute("aria-busy", "true");
  try {
    const body = form.dataset.changedOnly === undefined ? collect(form) : changes(form);
    await newImageFirst(form, body);
    if (!(await agreesToRemake(form, body))) {
      return;
    }
    const undo = await workVolumeFirst(form, body);
    const answer = await save(form, body).catch(async (error) => {
      await undo(error);
      throw error;
    });
    // Null is also the answer without a body, such as that of a form that deletes.
    if (answer !== null || !mayReplace(form)) {
      finish(form, answer);
    }
  } catch (error) {
    refuse(form, error);
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Asks before files are lost, unless the form has shown them. Null when the user does not go on. */
function save(form, body) {
  const attempt = (refuses) => {
    const revision = form.dataset.revision;
    const headers = revision ? { "If-Match": revision } : {};
    const whole = refuses ? { ...body, refuse_loss: true } : body;
    return send(form.dataset.method, form.dataset.api, whole, { headers });
  };
  if (!mayReplace(form) || form.dataset.lossShown !== undefined) {
    return attempt(false);
  }
  const { workspace: id, name, verb } = form.dataset;
  return unlessLost({ id, name }, verb || "Save", attempt);
}

/** A change of what an image or a stack is made from replaces what runs from it. */
async function agreesToRemake(form, body) {
  const { remakes, remadeBy, name } = form.dataset;
  if (!remakes || !remadeBy.split(" ").some((field) => field in body)) {
    return true;
  }
  const losing = await replaceLosses(remakes, {});
  return losing.length === 0 || agreeToLose(`Change ${name}?`, losing, { isTitle: true });
}

function mayReplace(form) {
  return form.dataset.workspace !== undefined;
}

function refuse(form, error) {
  if (error.code === "revision_moved" && form.dataset.changedOnly !== undefined) {
    showConflict(form);
    return;
  }
  const { homeless, first } = showErrors(form, error.fields || {});
  toast(homeless.length > 0 ? homeless.join(" ") : error.message, "error");
  if (first) {
    const place = first.matches("[name]") ? first : first.querySelector("[name], button");
    place?.focus();
  }
}

/** One that was taken is not kept on the page, and the next change has to give it again. */
function forgetPasswords(form) {
  for (const input of form.querySelectorAll('input[type="password"]')) {
    input.value = "";
  }
}

function finish(form, answer) {
  const { then, done } = form.dataset;
  if (then === "refresh") {
    form.closest("dialog")?.close();
    if (form.dataset.changedOnly === undefined) {
      form.reset();
    } else {
      forgetPasswords(form);
      originals.set(form, collect(form));
      edited(form);
    }
    toast(done);
    refreshAll();
    return;
  }
  if (then === "reload" && document.getElementById("tab-panel")) {
    originals.set(form, collect(form));
    toast(done);
    renewTab();
    renewHead();
    refreshAll();
    return;
  }
  originals.delete(form);
  if (done) {
    toastLater(done);
  }
  if (then === "reload") {
    location.reload();
  } else {
    location.assign(then.replace("{id}", answer.id));
  }
}
