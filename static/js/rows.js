// Repeated parts of a form: add one, remove one.

export function startRows() {
  document.addEventListener("click", (event) => {
    const add = event.target.closest("[data-add]");
    const remove = event.target.closest("[data-remove]");
    if (add) {
      addRow(add.closest("[data-rows]"), add);
    } else if (remove) {
      removeRow(remove.closest("[data-row-fields]"));
    }
  });
  // The value of a secret is not for the eyes of whoever stands behind.
  document.addEventListener("change", (event) => {
    if (event.target.name === "env_secret") {
      const row = event.target.closest("[data-row-fields]");
      row.querySelector('[name="env_value"]').type = event.target.checked ? "password" : "text";
    }
  });
}

function addRow(container, button) {
  const template = container.querySelector("template");
  const copy = document.importNode(template.content.firstElementChild, true);
  container.insertBefore(copy, template);
  copy.querySelector("input, select").focus();
  changed(button.form);
}

function removeRow(row) {
  const next = row.nextElementSibling?.matches("[data-row-fields]") ? row.nextElementSibling : null;
  const form = row.closest("form");
  const container = row.closest("[data-rows]");
  row.remove();
  (next?.querySelector("input") || container.querySelector("[data-add]"))?.focus();
  changed(form);
}

function changed(form) {
  form.dispatchEvent(new Event("change", { bubbles: true }));
}
