// Tabs of one object's page: opened in place, addressable, by mouse, arrow keys and the way back.
// A form with unsaved edits is put aside and found again, as it was left.

import { isEdited } from "./forms.js";

// The panel with unsaved edits, by the name of its tab.
const aside = new Map();

export function startTabs() {
  if (panel()) {
    // On a phone the open tab may lie beyond the edge.
    mark(panel().dataset.tab);
  }
  document.addEventListener("click", (event) => {
    const tab = event.target.closest("a[data-tab-name]");
    const link = event.target.closest("a[data-to-tab]");
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) {
      return;
    }
    if (tab || (link && panel())) {
      event.preventDefault();
      open(tab ? tab.dataset.tabName : link.dataset.toTab);
    }
  });
  document.addEventListener("keydown", (event) => {
    const tab = event.target.closest("a[data-tab-name]");
    if (tab) {
      move(tab, event);
    }
  });
  window.addEventListener("popstate", () => panel() && load(named() ?? firstTab()));
  document.addEventListener("htmx:beforeSwap", (event) => putAside(event.detail.target));
  document.addEventListener("htmx:afterSettle", bringBack);
  document.addEventListener("input", markEdited);
  for (const kind of ["htmx:sendError", "htmx:responseError"]) {
    document.addEventListener(kind, (event) => event.target.matches(".tabs") && stay());
  }
}

/** The tab did not come: the marks and the address are those of what is shown. */
function stay() {
  mark(panel().dataset.tab);
  history.replaceState(null, "", `?tab=${panel().dataset.tab}`);
}

/** Draws the open tab anew, without what was put aside of it. */
export function renewTab() {
  const open = panel()?.dataset.tab;
  aside.delete(open);
  if (open) {
    load(open);
  }
}

function panel() {
  return document.getElementById("tab-panel");
}

function named() {
  return new URLSearchParams(location.search).get("tab");
}

function firstTab() {
  return document.querySelector("[data-tab-name]").dataset.tabName;
}

function open(name) {
  if (panel().dataset.tab !== name || named() !== name) {
    history.pushState(null, "", `?tab=${name}`);
  }
  if (panel().dataset.tab !== name) {
    load(name);
  }
}

function load(name) {
  mark(name);
  const source = document.querySelector(".tabs");
  htmx.ajax("GET", `${location.pathname}?tab=${name}&part=tab`, { source, target: "#tab-panel", swap: "outerHTML" });
}

/** Arrow keys move between the tabs, as in any list of tabs; Home and End go to its ends. */
function move(tab, event) {
  const tabs = [...document.querySelectorAll("[data-tab-name]")];
  const at = tabs.indexOf(tab);
  const places = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
  if (event.key === " ") {
    event.preventDefault();
    tab.click();
  } else if (places[event.key] !== undefined) {
    event.preventDefault();
    const next = tabs[(places[event.key] + tabs.length) % tabs.length];
    next.focus();
    next.click();
  }
}

function mark(name) {
  for (const tab of document.querySelectorAll("[data-tab-name]")) {
    const here = tab.dataset.tabName === name;
    tab.setAttribute("aria-selected", String(here));
    tab.tabIndex = here ? 0 : -1;
    if (here) {
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }
}

function putAside(target) {
  if (target === panel() && [...target.querySelectorAll("form[data-changed-only]")].some(isEdited)) {
    aside.set(target.dataset.tab, target);
  }
}

function bringBack() {
  const shown = panel();
  if (!shown) {
    return;
  }
  const kept = aside.get(shown.dataset.tab);
  if (kept && kept !== shown) {
    aside.delete(shown.dataset.tab);
    shown.replaceWith(kept);
  }
  mark(panel().dataset.tab);
  markEdited();
}

/** A tab says that edits wait in it. */
function markEdited() {
  const forms = [...(panel()?.querySelectorAll("form[data-changed-only]") ?? [])];
  const here = forms.some(isEdited) ? panel().dataset.tab : null;
  for (const tab of document.querySelectorAll("[data-tab-name]")) {
    const name = tab.dataset.tabName;
    tab.toggleAttribute("data-edited", name === here || aside.has(name));
  }
}
