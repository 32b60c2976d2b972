// What saving would do, before it is saved: in one sentence, and field by field.

import { icon } from "./icons.js";
import { amountOf, lossDetails, lossSentence } from "./loss-words.js";
import { describeSize } from "./sizes.js";

const WORDS = {
  none: "Saving changes nothing on the host.",
  create: "Saving creates the container.",
  start: "Saving starts the container.",
  stop: "Saving stops the container.",
  in_place: "Saving changes the container in place; nothing restarts.",
  replace: "Saving replaces the container, with a brief interruption.",
  replace_smoothly: "Saving replaces the container without interruption.",
};
const ICONS = { replace: "refresh-cw", replace_smoothly: "refresh-cw" };
const EFFECTS = { none: "nothing restarts", in_place: "in place", replace: "replaces" };

/** Without a plan: nothing was changed, or `problem` says why there is none. */
export function showPlan(form, plan, problem = "") {
  const place = form.querySelector("[data-plan-words]");
  place.replaceChildren();
  delete place.dataset.effect;
  if (!plan) {
    const words = document.createElement("span");
    words.className = "muted";
    words.textContent = problem || "Nothing changed.";
    place.append(words);
    return;
  }
  place.dataset.effect = plan.action;
  const key = plan.action === "replace" && plan.downtime === "none" ? "replace_smoothly" : plan.action;
  const line = document.createElement("span");
  line.className = "plan-words";
  const words = (WORDS[key] || plan.action).replace("Saving", form.dataset.verb || "Saving");
  line.append(icon(ICONS[key] || "circle-check"), words);
  place.append(line);
  if (plan.downtime_reason) {
    const why = document.createElement("span");
    why.className = "muted";
    why.textContent = `Why it is interrupted: ${plan.downtime_reason}`;
    place.append(why);
  }
  if (plan.loses_files) {
    place.append(...lossOf(form, plan));
  }
  for (const note of plan.notes || []) {
    place.append(part("span", note));
  }
  if (plan.changes.length > 0) {
    place.append(changeList(plan.changes));
  }
}

/** Whole in a dialog, which asks nothing more; in one sentence beside a form. */
function lossOf(form, plan) {
  const line = document.createElement("span");
  line.className = "plan-words plan-loss";
  line.append(icon("triangle-alert"), part("span", lossSentence(plan)));
  if (!form.closest("dialog")) {
    return [line];
  }
  return amountOf(plan) ? [line, ...lossDetails(plan)] : lossDetails(plan);
}

/** Field changes, old to new, as templates/partials/changes.html draws them. */
export function changeList(changes) {
  const list = document.createElement("ul");
  list.className = "changes";
  for (const change of changes) {
    const item = document.createElement("li");
    item.className = "change";
    item.append(
      part("b", change.field),
      part("del", shown(change, "from")),
      "→",
      part("ins", shown(change, "to")),
      part("span", EFFECTS[change.effect] || change.effect),
    );
    item.lastChild.className = "effect";
    list.append(item);
  }
  return list;
}

function part(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

function shown(change, side) {
  const value = change[side];
  if (value === null || value === undefined || value === "") {
    return "none";
  }
  if (typeof value === "number" && change.field.endsWith("_bytes")) {
    return describeSize(value);
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}
