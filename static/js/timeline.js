// The waterfall of cycles keeps what was opened open when it is drawn anew.

const opened = new Set();

export function startTimeline() {
  // The event does not bubble, but it can be caught on its way down.
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (target.dataset?.cycle) {
        opened[target.open ? "add" : "delete"](target.dataset.cycle);
      }
    },
    true,
  );
  document.addEventListener("htmx:afterSwap", () => {
    for (const cycle of document.querySelectorAll("details[data-cycle]:not([open])")) {
      cycle.open = opened.has(cycle.dataset.cycle);
    }
  });
}
