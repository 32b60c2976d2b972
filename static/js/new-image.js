// A workspace from an image that is not there yet: the pull is queued first, then the workspace.

import { ApiError, send } from "./api.js";

const MOST_TRIES = 5;
const LONGEST_NAME = 120;

/** Puts the id of the image into `body`, making the image if the form asks for a new one. */
export async function newImageFirst(form, body) {
  const select = form.elements.image;
  const reference = form.elements.reference;
  if (form.dataset.workspaceForm === undefined || !wantsNewImage(select)) {
    return;
  }
  const wanted = reference.value.trim();
  if (!wanted) {
    throw new ApiError(400, {
      message: "Choose an image, or write the reference of one to pull.",
      fields: { reference: ["Write the reference of an image, for example debian:12."] },
    });
  }
  const host = form.elements.host?.value || form.dataset.host;
  const image = await create(host, wanted);
  // Should the workspace be refused, the next try takes this image instead of pulling again.
  const option = new Option(`${image.name} (${wanted})`, image.id, true, true);
  option.dataset.host = host;
  select.prepend(option);
  select.dispatchEvent(new Event("change", { bubbles: true }));
  body.image = image.id;
}

export function wantsNewImage(select) {
  return select.selectedOptions[0]?.dataset.newImage !== undefined;
}

async function create(host, reference) {
  const known = await find(host, reference);
  if (known) {
    return known;
  }
  const name = reference.slice(0, LONGEST_NAME);
  for (let number = 1; ; number += 1) {
    const body = { kind: "pull", host, reference, name: number === 1 ? name : `${name}-${number}` };
    try {
      return await send("POST", "/api/v1/images/", body);
    } catch (error) {
      if (!error.fields.name || number === MOST_TRIES) {
        throw error;
      }
    }
  }
}

async function find(host, reference) {
  const query = new URLSearchParams({ host, search: reference, page_size: "500" });
  const list = await send("GET", `/api/v1/images/?${query}`);
  return list.results.find((image) => image.kind === "pull" && image.reference === reference);
}
