// Images that nothing needs: choose some, see what goes and how much that frees, then delete them.

import { send } from "./api.js";
import { expectDeletion, refreshAll } from "./live.js";
import { describeSize } from "./sizes.js";
import { toast } from "./toasts.js";

// What was chosen before the list was drawn again.
let kept = new Set();

export function startUnused() {
  document.addEventListener("htmx:beforeSwap", () => {
    kept = new Set(chosen().map((box) => box.dataset.unusedImage));
  });
  document.addEventListener("htmx:load", (event) => {
    const list = event.target.closest("[data-unused]");
    if (list?.querySelector("[data-unused-all]")) {
      boxes(list).forEach((box) => {
        box.checked = kept.has(box.dataset.unusedImage);
      });
      showChoice(list);
    }
  });
  document.addEventListener("change", (event) => {
    const list = event.target.closest("[data-unused]");
    if (!list) {
      return;
    }
    if (event.target.matches("[data-unused-all]")) {
      boxes(list).forEach((box) => {
        box.checked = event.target.checked;
      });
    }
    showChoice(list);
  });
  document.addEventListener("trailer:open", (event) => {
    if (event.target.matches("[data-unused-dialog]")) {
      fill(event.target);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unused-delete]");
    if (button) {
      remove(button);
    }
  });
}

function boxes(list = document) {
  return [...list.querySelectorAll("[data-unused-image]")];
}

function chosen() {
  return boxes().filter((box) => box.checked);
}

function showChoice(list) {
  const some = chosen();
  const all = list.querySelector("[data-unused-all]");
  all.checked = some.length === boxes(list).length;
  all.indeterminate = some.length > 0 && !all.checked;
  list.querySelector("[data-unused-sum]").textContent =
    some.length > 0 ? `${count(some.length)} chosen, ${freed(some)}.` : "Nothing chosen.";
  list.querySelector('[data-open="remove-images"]').disabled = some.length === 0;
}

/** One image on the engine may have several names here: it goes with the last of them. */
function freed(some) {
  const going = new Set(some);
  const staying = new Set(boxes().filter((box) => !going.has(box)).map((box) => box.dataset.engine));
  const sizes = new Map();
  for (const { dataset } of some) {
    if (dataset.engine && dataset.shared === undefined && !staying.has(dataset.engine)) {
      sizes.set(dataset.engine, Number(dataset.size));
    }
  }
  const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  return total > 0 ? `up to ${describeSize(total)} freed` : "nothing freed on the disk";
}

function count(number) {
  return `${number} image${number === 1 ? "" : "s"}`;
}

function fill(dialog) {
  const some = chosen();
  const items = some.map((box) => {
    const item = document.createElement("li");
    const size = document.createElement("span");
    size.textContent = box.dataset.size ? describeSize(Number(box.dataset.size)) : "no size known";
    item.append(box.dataset.name, size);
    return item;
  });
  dialog.querySelector("[data-unused-list]").replaceChildren(...items);
  dialog.querySelector("[data-unused-total]").textContent = `${count(some.length)}, ${freed(some)}.`;
}

async function remove(button) {
  const some = chosen();
  const refused = [];
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  for (const { dataset } of some) {
    expectDeletion(`image:${dataset.unusedImage}`);
    try {
      await send("DELETE", `/api/v1/images/${dataset.unusedImage}/`);
    } catch (error) {
      refused.push(error.message);
    }
  }
  button.removeAttribute("aria-busy");
  button.disabled = false;
  button.closest("dialog").close();
  refreshAll();
  if (some.length > refused.length) {
    toast(`${count(some.length - refused.length)} deleted. The host removes them in its next cycle.`);
  }
  refused.slice(0, 3).forEach((message) => toast(message, "error"));
}
