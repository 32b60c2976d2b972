// The frame of the page: mobile navigation, menus, dialogs, copying, suggestions.

import { toast } from "./toasts.js";

export function startChrome() {
  openNamed();
  window.addEventListener("hashchange", openNamed);
  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    closeMenus(at("[data-menu]"));
    if (at(".nav-toggle")) {
      setNavigation(!document.body.classList.contains("nav-open"));
    } else if (at(".scrim")) {
      setNavigation(false);
    } else if (at("[data-open]")) {
      openDialog(at("[data-open]"));
    } else if (at("[data-close]")) {
      at("dialog").close();
    } else if (at("[data-copy]")) {
      copy(at("[data-copy]"));
    } else if (event.target.tagName === "DIALOG") {
      // Only the backdrop has the dialog itself as its target.
      closeOnBackdrop(event);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      closeMenus(null);
      setNavigation(false);
    }
  });
}

/** An address may lead to a dialog: /networks/#new-network. */
function openNamed() {
  const dialog = document.getElementById(location.hash.slice(1));
  if (dialog?.matches("dialog:not([open])")) {
    dialog.showModal();
  }
}

/** A dialog's template is on the page only while it is open. Whoever fills it in hears of it first. */
function openDialog(button) {
  const dialog = document.getElementById(button.dataset.open);
  const template = dialog.querySelector(":scope > template");
  if (template) {
    const content = [...document.importNode(template.content, true).children];
    dialog.append(...content);
    dialog.addEventListener("close", () => content.forEach((element) => element.remove()), { once: true });
  }
  dialog.dispatchEvent(new CustomEvent("trailer:open", { bubbles: true, detail: button }));
  dialog.showModal();
  dialog.querySelector("[data-select]")?.select();
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("[data-menu][open]")) {
    if (menu !== except) {
      menu.open = false;
    }
  }
}

function setNavigation(open) {
  document.body.classList.toggle("nav-open", open);
  const toggle = document.querySelector(".nav-toggle");
  toggle?.setAttribute("aria-expanded", String(open));
  document.querySelector(".scrim")?.remove();
  if (open) {
    const scrim = document.createElement("button");
    scrim.className = "scrim";
    scrim.setAttribute("aria-label", "Close the navigation");
    document.body.append(scrim);
    document.querySelector(".sidebar a").focus();
  }
}

function closeOnBackdrop(event) {
  const box = event.target.getBoundingClientRect();
  const inside =
    event.clientX >= box.left && event.clientX <= box.right &&
    event.clientY >= box.top && event.clientY <= box.bottom;
  if (!inside) {
    event.target.close();
  }
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    toast("The browser does not allow copying here. The text is selected: press Ctrl-C.", "error");
  }
}
