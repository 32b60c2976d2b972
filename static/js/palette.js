// The command palette: everything within a few keys, without the mouse.

import { read } from "./api.js";
import { carryOut } from "./actions.js";

const AFTER_MS = 120;

let timer = null;
let asked = 0;

export function startPalette() {
  const dialog = document.getElementById("palette");
  if (!dialog) {
    return;
  }
  const input = dialog.querySelector("[data-palette-input]");
  document.addEventListener("keydown", (event) => {
    if (isShortcut(event) && !dialog.open && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      open(dialog, input);
    }
  });
  document.addEventListener("click", (event) => {
    const row = event.target.closest(".palette-row");
    if (event.target.closest("[data-palette-open]")) {
      open(dialog, input);
    } else if (row) {
      choose(dialog, row, event.ctrlKey || event.metaKey);
    }
  });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find(dialog, input), AFTER_MS);
  });
  input.addEventListener("keydown", (event) => steer(dialog, input, event));
  dialog.addEventListener("mousemove", (event) => {
    const row = event.target.closest(".palette-row");
    if (row) {
      point(dialog, input, row);
    }
  });
}

/** Whoever types into a field or a terminal means the letter itself. */
function isShortcut(event) {
  const { target, key } = event;
  if (target.closest("[data-terminal]")) {
    return false;
  }
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k") {
    return true;
  }
  const writes = target.isContentEditable || target.matches("input, textarea, select");
  return key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey;
}

function open(dialog, input) {
  input.value = "";
  list(dialog).replaceChildren();
  dialog.showModal();
  input.focus();
  find(dialog, input);
}

async function find(dialog, input) {
  asked += 1;
  const number = asked;
  try {
    const answer = await read(`/search/?q=${encodeURIComponent(input.value)}`);
    const text = await answer.text();
    // Only the answer to what is typed now counts.
    if (number === asked) {
      const parsed = new DOMParser().parseFromString(`<ul>${text}</ul>`, "text/html");
      list(dialog).replaceChildren(...parsed.querySelector("ul").children);
      point(dialog, input, rows(dialog)[0]);
      dialog.querySelector("[data-palette-count]").textContent = `${rows(dialog).length} results`;
    }
  } catch (error) {
    const line = document.createElement("li");
    line.className = "palette-none";
    line.textContent = error.message;
    list(dialog).replaceChildren(line);
  }
}

function steer(dialog, input, event) {
  const all = rows(dialog);
  const at = all.findIndex((row) => row.getAttribute("aria-selected") === "true");
  const places = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 8, all.length - 1), PageUp: Math.max(at - 8, 0) };
  if (event.key === "Enter") {
    event.preventDefault();
    if (all[at]) {
      choose(dialog, all[at], event.ctrlKey || event.metaKey);
    }
  } else if (places[event.key] !== undefined && all.length > 0) {
    event.preventDefault();
    point(dialog, input, all[(places[event.key] + all.length) % all.length]);
  }
}

function point(dialog, input, chosen) {
  for (const row of rows(dialog)) {
    row.setAttribute("aria-selected", String(row === chosen));
  }
  if (chosen) {
    input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  } else {
    input.removeAttribute("aria-activedescendant");
  }
}

function choose(dialog, row, apart) {
  const { address, run, on, name } = row.dataset;
  dialog.close();
  if (run) {
    carryOut(run, on, name);
  } else if (apart) {
    window.open(address, "_blank", "noopener");
  } else {
    location.assign(address);
  }
}

function list(dialog) {
  return dialog.querySelector("[data-palette-list]");
}

function rows(dialog) {
  return [...dialog.querySelectorAll(".palette-row")];
}
