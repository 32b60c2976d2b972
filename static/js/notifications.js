// Browser notifications, for those who asked for them: what failed, and builds that finished, while the
// page is out of sight.

import { send } from "./api.js";
import { toast } from "./toasts.js";

const KEPT = "trailer-notify";
const COLLECTIONS = { workspace: "workspaces", image: "images", host: "hosts", stack: "stacks" };
const NEWS = {
  workspace: { error: "has failed" },
  image: { failed: "could not be made", finished: "is ready" },
  host: { offline: "is silent" },
  stack: { failed: "could not be deployed" },
};

// What people were told already: the same state comes again and again.
const warned = new Map();

export function startNotifications() {
  show();
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-notify]")) {
      toggle();
    }
  });
  document.addEventListener("trailer:state", (event) => consider(event.detail));
}

/** What to follow besides what is on the page. */
export function followedForNews() {
  return isOn() ? ["workspaces", "images", "hosts", "stacks"] : [];
}

function isOn() {
  try {
    return localStorage.getItem(KEPT) === "on" && globalThis.Notification?.permission === "granted";
  } catch {
    return false;
  }
}

async function toggle() {
  if (!globalThis.Notification) {
    toast("This browser shows no notifications here. They need HTTPS or localhost.", "error");
    return;
  }
  const wanted = !isOn();
  if (wanted && (await Notification.requestPermission()) !== "granted") {
    toast("The browser was told not to show notifications of this site. Allow them in its settings.", "error");
    return;
  }
  try {
    localStorage.setItem(KEPT, wanted ? "on" : "off");
  } catch {
    toast("The browser keeps no settings of this site, so the choice cannot be remembered.", "error");
    return;
  }
  show();
  document.dispatchEvent(new CustomEvent("trailer:follow"));
  toast(wanted ? "You will be told of failures and finished builds while this page is out of sight." : "No more notifications.");
}

function show() {
  for (const button of document.querySelectorAll("[data-notify]")) {
    button.setAttribute("aria-checked", String(isOn()));
  }
}

/** What is on the page is news when it differs from that; of anything else the server speaks only
    because it changed. */
function consider({ resource, status, message, previous, warning }) {
  if (warning && warned.get(resource) !== warning && isOn() && document.visibilityState === "hidden") {
    notify(resource, "stops soon", warning);
  }
  if (warning !== undefined) {
    warned.set(resource, warning);
  }
  const words = NEWS[resource.split(":")[0]]?.[status];
  const isNews = words && previous !== status;
  if (isNews && isOn() && document.visibilityState === "hidden") {
    notify(resource, words, message);
  }
}

async function notify(resource, words, message) {
  const [kind, id] = resource.split(":");
  try {
    const { name } = await send("GET", `/api/v1/${COLLECTIONS[kind]}/${id}/`);
    // The same tag: several open pages tell it once.
    const note = new Notification(`${name} ${words}`, { body: message || "", tag: resource });
    note.addEventListener("click", () => {
      window.focus();
      location.assign(`/${COLLECTIONS[kind]}/${id}/`);
    });
  } catch {
    // What cannot be read any more is not worth a notification.
  }
}
