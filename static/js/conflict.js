// Somebody else saved first: who, what, and a way on that loses nothing of what was typed here.

import { send } from "./api.js";
import { icon } from "./icons.js";
import { changeList } from "./plan.js";
import { renewTab } from "./tabs.js";
import { toast } from "./toasts.js";

const EVENTS_ASKED = 20;

export function clearConflict(form) {
  form.querySelector("[data-conflict]")?.remove();
}

/** Draws the notice in the form's save bar, which is always in view; the form stays as it is until the user chooses. */
export async function showConflict(form) {
  const notice = document.createElement("div");
  notice.className = "notice notice-amber conflict";
  notice.dataset.conflict = "";
  notice.setAttribute("role", "alert");
  const words = document.createElement("div");
  const title = document.createElement("p");
  title.textContent = "This was changed while you were editing. Nothing is lost: your edits are still in the form.";
  words.append(title);
  notice.append(icon("triangle-alert"), words);
  clearConflict(form);
  form.querySelector(".save-bar").prepend(notice);
  let newest;
  try {
    newest = await send("GET", form.dataset.api);
    words.append(...(await othersChanges(form)));
  } catch (error) {
    title.textContent += ` ${error.message}`;
    return;
  }
  words.append(buttons(form, newest.revision));
  toast("Not saved: somebody changed this meanwhile. Your edits are still here; choose what to do with them.", "error");
}

/** What was saved after this form was opened, newest first. */
async function othersChanges(form) {
  if (!form.dataset.plan) {
    return [];
  }
  const seen = Number(form.dataset.revision);
  const { results } = await send("GET", `${form.dataset.api}events/?page_size=${EVENTS_ASKED}`);
  return results
    .filter((event) => event.revision > seen && event.changes.length > 0)
    .flatMap((event) => {
      const who = document.createElement("p");
      who.textContent = `${event.actor || "Trailer"} changed:`;
      return [who, changeList(event.changes)];
    });
}

function buttons(form, revision) {
  const row = document.createElement("p");
  row.className = "conflict-buttons";
  const keep = button("Keep my edits and save over it", () => {
    form.dataset.revision = revision;
    clearConflict(form);
    form.requestSubmit();
  });
  const drop = button("Drop my edits and show what is stored", () => {
    form.remove();
    if (document.getElementById("tab-panel")) {
      renewTab();
    } else {
      location.reload();
    }
  });
  row.append(keep, drop);
  return row;
}

function button(words, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "button";
  element.textContent = words;
  element.addEventListener("click", act);
  return element;
}
