// A new workspace keeps a folder in a volume of its own, unless the user unticks that: the volume is made first.

import { ApiError, send } from "./api.js";

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const LONGEST_NAME = 63;
const MOST_TRIES = 9;
const REFUSED = [400, 500];

export function startWorkVolume() {
  document.querySelectorAll("form[data-workspace-form]").forEach(update);
  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest("form[data-workspace-form]");
      if (form) {
        update(form);
      }
    });
  }
}

/** Offered where the user may create volumes; named after the workspace. */
function update(form) {
  const part = form.querySelector("[data-work-volume]");
  if (!part) {
    return;
  }
  const offered = part.dataset.hosts.split(" ").includes(form.elements.host.value);
  part.hidden = !offered;
  part.querySelector("[data-work-folder]").hidden = !form.elements.work_volume.checked;
  part.querySelector("[data-work-volume-name]").textContent = nameFor(form.elements.name.value.trim() || "name", 1);
}

/** Makes the volume and mounts it in `body`. Returns what is to be called with the error when the workspace is refused. */
export async function workVolumeFirst(form, body) {
  const part = form.querySelector("[data-work-volume]");
  // Without a name of its own the workspace is refused anyway, with every reason at once.
  if (!part || part.hidden || !form.elements.work_volume.checked || !NAME.test(body.name)) {
    return () => {};
  }
  const volume = part.dataset.made ? { id: part.dataset.made, name: part.dataset.madeName } : await create(body);
  part.dataset.made = volume.id;
  part.dataset.madeName = volume.name;
  const index = body.mounts.length;
  body.mounts = [...body.mounts, { volume: volume.id, target: form.elements.work_folder.value.trim() }];
  return (error) => undo(part, volume, index, error);
}

async function create({ host, name: workspace }) {
  for (let number = 1; ; number += 1) {
    try {
      return await send("POST", "/api/v1/volumes/", { host, name: nameFor(workspace, number) });
    } catch (error) {
      if (!error.fields?.name || number === MOST_TRIES) {
        const sentence = `The volume could not be made: ${error.message}`;
        throw new ApiError(error.status, { ...error.body, message: sentence, fields: { work_volume: [sentence] } });
      }
    }
  }
}

function nameFor(workspace, number) {
  const end = number === 1 ? "-data" : `-data-${number}`;
  return workspace.slice(0, LONGEST_NAME - end.length) + end;
}

/** A refused workspace leaves no volume behind. When it is not known whether it was refused, the next try takes the same. */
async function undo(part, volume, index, error) {
  const [least, most] = REFUSED;
  const target = error.fields?.[`mounts.${index}.target`];
  if (target) {
    delete error.fields[`mounts.${index}.target`];
    error.fields.work_folder = target;
  }
  if (!(error.status >= least && error.status < most)) {
    return;
  }
  try {
    await send("DELETE", `/api/v1/volumes/${volume.id}/?confirm=${encodeURIComponent(volume.name)}`);
    delete part.dataset.made;
  } catch {
    // It is still there for the next try.
  }
}
