// Short messages in the corner; one can be left behind for the page that comes next.

import { icon } from "./icons.js";

const KEPT = "trailer-toast";
const SHOWN_MS = 5000;
const ERROR_SHOWN_MS = 12_000;

export function toast(text, kind = "done") {
  const region = document.getElementById("toasts");
  const box = document.createElement("div");
  box.className = kind === "error" ? "toast toast-error" : "toast";
  if (kind === "error") {
    box.setAttribute("role", "alert");
  }
  const words = document.createElement("p");
  words.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button button-icon";
  close.setAttribute("aria-label", "Dismiss");
  close.append(icon("x"));
  close.addEventListener("click", () => box.remove());
  box.append(icon(kind === "error" ? "circle-alert" : "circle-check"), words, close);
  region.append(box);
  raise(region);
  setTimeout(() => box.remove(), kind === "error" ? ERROR_SHOWN_MS : SHOWN_MS);
}

/** A new try answers the errors of the last one. */
export function clearErrorToasts() {
  document.querySelectorAll(".toast-error").forEach((box) => box.remove());
}

/** Shown after the navigation that follows. */
export function toastLater(text) {
  try {
    sessionStorage.setItem(KEPT, text);
  } catch {
    // Without storage the next page opens without the message.
  }
}

export function startToasts() {
  let kept = null;
  try {
    kept = sessionStorage.getItem(KEPT);
    sessionStorage.removeItem(KEPT);
  } catch {
    return;
  }
  if (kept) {
    toast(kept);
  }
}

/** Above an open dialog: the last one to enter the top layer lies on top. */
function raise(region) {
  if (!region.showPopover) {
    return;
  }
  if (region.matches(":popover-open")) {
    region.hidePopover();
  }
  region.showPopover();
}
