// The workspace form follows its host: images, volumes and networks of other hosts are left out.

import { wantsNewImage } from "./new-image.js";

export function startWorkspaceForm() {
  follow(document);
  document.addEventListener("htmx:load", (event) => follow(event.target));
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-workspace-form]");
    if (form && (event.target.name === "host" || event.target.name === "image" || event.target === form)) {
      update(form);
    }
  });
}

function follow(root) {
  root.querySelectorAll("form[data-workspace-form]").forEach(update);
}

function update(form) {
  const host = form.elements.host?.value;
  if (host) {
    for (const select of form.querySelectorAll('[name="image"], [name="volume"]')) {
      keepOfHost(select, host);
    }
    for (const label of form.querySelectorAll("label[data-host]")) {
      const elsewhere = label.dataset.host !== host;
      label.hidden = elsewhere;
      label.querySelector("input").disabled = elsewhere;
    }
  }
  const field = form.querySelector("[data-new-image-field]");
  field.hidden = !wantsNewImage(form.elements.image);
}

function keepOfHost(select, host) {
  for (const option of select.options) {
    const elsewhere = option.dataset.host !== undefined && option.dataset.host !== host;
    option.hidden = elsewhere;
    option.disabled = elsewhere;
  }
  if (select.selectedOptions[0]?.disabled ?? true) {
    const first = [...select.options].find((option) => !option.disabled);
    select.value = first ? first.value : "";
  }
}
