// The command palette: everything within a few keys, without the mouse.

import { read } from "./api.js";
import { carryOut } from "./actions.js";

const AFTER_MS = 120;

let timer = null;
let asked = 0;
// Something was typed whose answer is not there yet.
let isBehind = false;
// Enter, pressed meanwhile: it means the first row of that answer.
let entered = null;

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
    dialog.querySelector("[data-steered]")?.removeAttribute("data-steered");
    isBehind = true;
    entered = null;
    clearTimeout(timer);
    timer = setTimeout(() => find(dialog, input), AFTER_MS);
  });
  input.addEventListener("keydown", (event) => steer(dialog, input, event));
  dialog.addEventListener("close", () => {
    clearTimeout(timer);
    entered = null;
  });
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
  isBehind = false;
  list(dialog).replaceChildren();
  dialog.showModal();
  input.focus();
  find(dialog, input);
}

async function find(dialog, input) {
  asked += 1;
  const number = asked;
  const typed = input.value;
  let text = null;
  let problem = null;
  try {
    text = await (await read(`/search/?q=${encodeURIComponent(typed)}`)).text();
  } catch (error) {
    problem = error;
  }
  // Only the answer to what is typed now counts.
  if (number !== asked || typed !== input.value) {
    return;
  }
  isBehind = false;
  if (problem) {
    entered = null;
    showProblem(dialog, problem);
  } else {
    showFound(dialog, input, text);
  }
}

function showFound(dialog, input, text) {
  const parsed = new DOMParser().parseFromString(`<ul>${text}</ul>`, "text/html");
  const held = dialog.querySelector("[data-steered]");
  list(dialog).replaceChildren(...parsed.querySelector("ul").children);
  // Whoever went to a row before this answer came stays there.
  const same = held && rows(dialog).find((row) => meaning(row) === meaning(held));
  const chosen = same || rows(dialog)[0];
  point(dialog, input, chosen);
  same?.toggleAttribute("data-steered", true);
  dialog.querySelector("[data-palette-count]").textContent = `${rows(dialog).length} results`;
  if (entered && chosen) {
    choose(dialog, chosen, entered.apart);
  }
  entered = null;
}

function showProblem(dialog, problem) {
  const line = document.createElement("li");
  line.className = "palette-none";
  line.textContent = problem.message;
  list(dialog).replaceChildren(line);
}

function steer(dialog, input, event) {
  const all = rows(dialog);
  const at = all.findIndex((row) => row.getAttribute("aria-selected") === "true");
  const places = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 8, all.length - 1), PageUp: Math.max(at - 8, 0) };
  if (event.key === "Enter") {
    event.preventDefault();
    const apart = event.ctrlKey || event.metaKey;
    if (isBehind && !all[at]?.hasAttribute("data-steered")) {
      entered = { apart };
    } else if (all[at]) {
      choose(dialog, all[at], apart);
    }
  } else if (places[event.key] !== undefined && all.length > 0) {
    event.preventDefault();
    const chosen = all[(places[event.key] + all.length) % all.length];
    point(dialog, input, chosen);
    chosen.toggleAttribute("data-steered", true);
  }
}

function point(dialog, input, chosen) {
  for (const row of rows(dialog)) {
    row.setAttribute("aria-selected", String(row === chosen));
    row.removeAttribute("data-steered");
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

function meaning(row) {
  return [row.dataset.address, row.dataset.run, row.dataset.on].join(" ");
}

function list(dialog) {
  return dialog.querySelector("[data-palette-list]");
}

function rows(dialog) {
  return [...dialog.querySelectorAll(".palette-row")];
}
