// The API's sentences, each beside the input that it is about.

/** Returns the sentences for which the form has no input. */
export function showErrors(form, fields) {
  clearErrors(form);
  const homeless = [];
  let first = null;
  for (const [name, sentences] of Object.entries(fields)) {
    const place = find(form, name);
    if (place) {
      write(place, sentences.join(" "));
      first ??= place;
    } else {
      homeless.push(...sentences.map((sentence) => `${name}: ${sentence}`));
    }
  }
  return { homeless, first };
}

export function clearErrors(form) {
  form.querySelectorAll(".field-error").forEach((element) => element.remove());
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-errormessage");
  }
}

/** Typing into a field answers its error. */
export function startErrors() {
  document.addEventListener("input", (event) => {
    const control = event.target;
    if (control.getAttribute("aria-invalid") !== "true") {
      return;
    }
    document.getElementById(control.getAttribute("aria-errormessage"))?.remove();
    control.removeAttribute("aria-invalid");
    control.removeAttribute("aria-errormessage");
  });
}

function find(form, name) {
  const plain = form.querySelector(`[name="${CSS.escape(name)}"]`);
  if (plain && !plain.closest("template")) {
    return plain;
  }
  const [first, ...rest] = name.split(".");
  const rows = form.querySelector(`[data-rows="${CSS.escape(first === "secret_env" ? "env" : first)}"]`);
  if (rows) {
    return findInRows(rows, rest) || rows;
  }
  return (
    form.querySelector(`[data-set="${CSS.escape(first)}"]`) ||
    form.querySelector(`[name="${CSS.escape(first)}"], [name^="${CSS.escape(first)}."]`)
  );
}

/** By number (`ports.0.host_port`) or by the name in the row (`env.PATH`). */
function findInRows(rows, [key, field]) {
  const found = [...rows.querySelectorAll(":scope > [data-row-fields]")];
  const named = found.find((row) => key !== undefined && row.querySelector("[name]").value === key);
  const row = named || found[Number(key)];
  return row && (row.querySelector(`[name="${CSS.escape(field || "")}"]`) || row.querySelector("[name]"));
}

function write(place, sentence) {
  const line = document.createElement("p");
  line.className = "field-error";
  line.textContent = sentence;
  line.id = `error-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  if (place.name === undefined) {
    place.append(line);
    return;
  }
  place.setAttribute("aria-invalid", "true");
  place.setAttribute("aria-errormessage", line.id);
  (place.closest(".field, .check, [data-row-fields]") || place.parentElement).append(line);
}
