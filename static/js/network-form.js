// Parts of a form that count only on some hosts: fields for who may choose addresses there. Where
// they are hidden nothing of them is sent, and the engine chooses.

export function startNetworkForm() {
  document.querySelectorAll("[data-only-hosts]").forEach(update);
  document.addEventListener("change", (event) => {
    if (event.target.name === "host") {
      event.target.form?.querySelectorAll("[data-only-hosts]").forEach(update);
    }
  });
  document.addEventListener("reset", (event) => {
    // The event comes before the fields have their first values again.
    setTimeout(() => event.target.querySelectorAll("[data-only-hosts]").forEach(update));
  });
}

function update(part) {
  const host = part.closest("form").elements.host.value;
  const away = !part.dataset.onlyHosts.split(" ").includes(host);
  part.hidden = away;
  for (const control of part.querySelectorAll("input, select")) {
    control.disabled = away;
  }
}
