// Says that what somebody asked for, such as a tab, a filter or an order, did not come. What a page
// fetches by itself comes again by itself.

import { toast } from "./toasts.js";

const BY_ITSELF = new Set(["trailer:refresh", "trailer:saved", "load"]);

export function startUnanswered() {
  document.addEventListener("htmx:sendError", (event) => {
    tell(event, "The server does not answer. Check your connection and try again.");
  });
  document.addEventListener("htmx:responseError", (event) => {
    tell(event, `The server answered ${event.detail.xhr.status}; the page shows what it showed before. Try again.`);
  });
}

function tell({ detail, target }, words) {
  const cause = detail.requestConfig?.triggeringEvent?.type;
  if (!BY_ITSELF.has(cause) && !target.matches(".page-head, [hx-trigger*='every']")) {
    toast(words, "error");
  }
}
