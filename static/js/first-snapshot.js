// A snapshot before a replace: taken, waited for, and only then the replace goes on.

import { send } from "./api.js";

const LOOK_EVERY_MS = 1000;
const ENDED = ["failed", "cancelled"];

/** Resolves when every snapshot is kept; throws the first sentence of one that is not. `signal` ends the waiting, not the snapshots. */
export async function snapshotAll(workspaces, signal, show) {
  let kept = 0;
  show(kept);
  await Promise.all(
    workspaces.map(async (workspace) => {
      await snapshotOf(workspace, signal);
      kept += 1;
      show(kept);
    }),
  );
}

async function snapshotOf({ id, name }, signal) {
  let image;
  try {
    const answer = await send("POST", `/api/v1/workspaces/${id}/snapshot/`, {});
    image = answer.snapshot;
  } catch (error) {
    throw new Error(`No snapshot of ${name} was taken: ${error.message}`);
  }
  while (!signal.aborted) {
    const { status, message } = await send("GET", `/api/v1/images/${image}/`);
    if (status === "finished") {
      return;
    }
    if (ENDED.includes(status)) {
      throw new Error(`The snapshot of ${name} ${status === "failed" ? "failed" : "was cancelled"}. ${message || ""}`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, LOOK_EVERY_MS);
    });
  }
}
