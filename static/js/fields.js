// What a form says, as the JSON that the API takes. Nothing is judged here: text that is not what
// it should be is sent as it is, and the API's sentence is shown beside it.

import { parseSize } from "./sizes.js";
import { parseTest, parseWords } from "./words.js";

const ENCODERS = {
  number: (text) => (text.trim() === "" ? null : numberOr(text)),
  bytes: (text) => (text.trim() === "" ? null : (parseSize(text) ?? text)),
  null: (text) => text.trim() || null,
  list: (text) => text.split(",").map((part) => part.trim()).filter(Boolean),
  words: parseWords,
  test: parseTest,
};

// Names and values of which some are secret: the secret ones go into a field of their own.
const SECRET_HALF = { env: "secret_env", variables: "secret_variables" };

export function collect(form) {
  const body = {};
  for (const control of form.elements) {
    if (belongsToForm(control)) {
      put(body, control.name, value(control));
    }
  }
  for (const rows of form.querySelectorAll("[data-rows]")) {
    Object.assign(body, collectRows(rows));
  }
  for (const set of form.querySelectorAll("[data-set]")) {
    const chosen = set.querySelectorAll("input:checked:not(:disabled)");
    body[set.dataset.set] = [...chosen].map((input) => input.value);
  }
  for (const group of form.querySelectorAll("[data-object]")) {
    const name = group.dataset.object;
    body[name] = group.dataset.filled === undefined
      ? whole(body[name], form.elements[group.dataset.needs])
      : filled(body[name]);
  }
  return body;
}

/** An object without the part that it needs is none. */
function whole(object, needed) {
  return needed.value.trim() ? object : null;
}

/** Only those parts that say something; none when none does. */
function filled(object) {
  const said = Object.entries(object).filter(([, part]) => ![null, false].includes(part) && String(part) !== "");
  return said.length > 0 ? Object.fromEntries(said) : null;
}

/** Only what differs from `before`. Nested objects go whole. */
export function difference(before, after) {
  const keys = Object.keys(after).filter(
    (key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]),
  );
  return Object.fromEntries(keys.map((key) => [key, after[key]]));
}

function belongsToForm(control) {
  return (
    control.name &&
    !control.disabled &&
    control.dataset.skip === undefined &&
    !control.closest("[data-row-fields], [data-set]")
  );
}

function value(control) {
  if (control.type === "checkbox") {
    return control.checked;
  }
  const encode = ENCODERS[control.dataset.encode];
  return encode ? encode(control.value) : control.value;
}

/** `router.mode` becomes {router: {mode}}. */
function put(body, name, content) {
  const [first, second] = name.split(".");
  if (second === undefined) {
    body[first] = content;
  } else {
    body[first] = { ...body[first], [second]: content };
  }
}

function collectRows(container) {
  const name = container.dataset.rows;
  const rows = [...container.querySelectorAll(":scope > [data-row-fields]")];
  if (name === "env" || name === "variables") {
    return collectNamed(rows, name, SECRET_HALF[name]);
  }
  if (container.dataset.pairs !== undefined) {
    return { [name]: Object.fromEntries(rows.map(collectPair).filter(([key, content]) => key || content)) };
  }
  return { [name]: rows.map(collectRow) };
}

function collectRow(row) {
  const controls = [...row.querySelectorAll("[name]")];
  const entries = controls.map((control) => [control.name, value(control)]);
  // What was left empty is left out, so that the API's defaults hold.
  return Object.fromEntries(entries.filter(([, content]) => content !== null && content !== ""));
}

function collectPair(row) {
  const name = text(row, "pair_name").trim();
  return [name, keptOr(name, text(row, "pair_value"), row.dataset.kept)];
}

/** A secret that was stored before and not typed again is kept: null. */
function keptOr(name, content, kept) {
  return content === "" && kept === name ? null : content;
}

function collectNamed(rows, plainName, secretName) {
  const plain = {};
  const secret = {};
  for (const row of rows) {
    const name = text(row, "env_name").trim();
    const content = text(row, "env_value");
    if (!name && !content) {
      continue;
    }
    if (row.querySelector('[name="env_secret"]').checked) {
      secret[name] = keptOr(name, content, row.dataset.kept);
    } else {
      plain[name] = content;
    }
  }
  return { [plainName]: plain, [secretName]: secret };
}

function text(row, name) {
  return row.querySelector(`[name="${name}"]`).value;
}

function numberOr(text) {
  const number = Number(text);
  return Number.isFinite(number) ? number : text;
}
