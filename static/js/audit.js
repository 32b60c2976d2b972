// The audit looks again by itself, but never takes away what somebody is reading.

export function startAudit() {
  document.addEventListener("htmx:beforeRequest", (event) => {
    const list = event.target.closest?.("[data-keep-open]");
    const polled = !event.detail.requestConfig.triggeringEvent;
    if (list && polled && (document.hidden || list.querySelector("details[open]"))) {
      event.preventDefault();
    }
  });
}
