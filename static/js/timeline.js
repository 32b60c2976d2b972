// The waterfall of cycles keeps what was opened open when it is drawn anew.

const opened = new Set();

export function startTimeline() {
  // Not by their "toggle" event: that comes a moment after the click, maybe after they are gone.
  document.addEventListener("htmx:beforeSwap", () => {
    for (const cycle of document.querySelectorAll("details[data-cycle]")) {
      opened[cycle.open ? "add" : "delete"](cycle.dataset.cycle);
    }
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const cycle of document.querySelectorAll("details[data-cycle]:not([open])")) {
      cycle.open = opened.has(cycle.dataset.cycle);
    }
  });
}
