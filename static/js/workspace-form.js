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
    const template = form.querySelector('[data-rows="mounts"] template').content;
    const volumes = template.querySelector('[name="volume"]');
    keepOfHost(volumes, host);
    const some = [...volumes.options].some((option) => !option.disabled);
    form.querySelector('[data-some-of="volumes"]').hidden = !some;
    form.querySelector('[data-none-of="volumes"]').hidden = some;
    for (const label of form.querySelectorAll("label[data-host]")) {
      const elsewhere = label.dataset.host !== host;
      label.hidden = elsewhere;
      label.querySelector("input").disabled = elsewhere;
    }
  }
  showNone(form, "networks", "label[data-host]:not([hidden])");
  const field = form.querySelector("[data-new-image-field]");
  field.hidden = !wantsNewImage(form.elements.image);
}

/** Says so where the host has none of something. */
function showNone(form, noun, selector) {
  const some = form.querySelector(selector) !== null;
  form.querySelector(`[data-none-of="${noun}"]`).hidden = some;
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
