// Before a replace throws files away it asks once: what they are, and whether to keep them in a snapshot first.

import { send } from "./api.js";
import { snapshotAll } from "./first-snapshot.js";
import { amountOf, lossDetails, lossRows } from "./loss-words.js";
import { toast } from "./toasts.js";

const CODE = "would_lose_files";
const SEVERAL = "The containers below are replaced or removed, and with them the files that they wrote outside their volumes.";

export function startLoss() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-snapshot-first]");
    if (button) {
      keepThenSubmit(button);
    }
  });
}

/** Calls `attempt(true)`, which is refused where files would be lost. Then it asks, and calls `attempt(false)` when the user goes on; else the answer is null. */
export async function unlessLost(workspace, verb, attempt) {
  try {
    return await attempt(true);
  } catch (error) {
    if (error.code !== CODE) {
      throw error;
    }
    const agreed = await agreeToLose(verb, [{ ...workspace, loss: error.body }]);
    return agreed ? attempt(false) : null;
  }
}

/** Whether an error says that files would be lost. */
export function isLoss(error) {
  return error.code === CODE;
}

/** Workspaces that a stack's or an image's plan would take files from. What is not known is told by the action itself. */
export async function replaceLosses(path, body) {
  const plan = await send("POST", path, body, { safe: true });
  return plan.workspaces.map(({ workspace, name, service, why, ...loss }) => ({ id: workspace, name: service || name, why, loss }));
}

/** `items` are `{id, name, loss}`; resolves to whether the user goes on, after the snapshots if they chose those. */
export function agreeToLose(verb, items, { isTitle = false } = {}) {
  const dialog = document.getElementById("loss");
  const part = (name) => dialog.querySelector(`[data-loss-${name}]`);
  const kept = items.filter(({ loss }) => loss.can_snapshot);
  const what = items.length === 1 ? items[0].name : `${items.length} workspaces`;
  part("title").textContent = isTitle ? verb : `${verb} ${what}?`;
  const isOne = items.length === 1 && !isTitle;
  part("text").replaceChildren(...(isOne ? words(items[0]) : [SEVERAL]));
  part("list").replaceChildren(...(isOne ? lossDetails(items[0].loss) : [lossRows(items)]));
  part("hint").textContent = hint(items, kept);
  const waiting = new AbortController();
  const settle = (busy, text = "", isProblem = false) => {
    const progress = part("progress");
    progress.hidden = !text;
    progress.classList.toggle("is-waiting", busy);
    progress.classList.toggle("notice-red", isProblem);
    progress.querySelector("span").textContent = text;
    progress.querySelector(".icon").toggleAttribute("hidden", !busy);
    part("snapshot").disabled = busy;
    part("go").disabled = busy;
  };
  settle(false);
  part("snapshot").hidden = kept.length === 0;
  part("snapshot").onclick = async () => {
    try {
      await snapshotAll(kept, waiting.signal, (done) => settle(true, progressOf(kept, done)));
      if (!waiting.signal.aborted) {
        dialog.close("yes");
      }
    } catch (error) {
      settle(false, error.message, true);
      part("snapshot").focus();
    }
  };
  dialog.returnValue = "";
  dialog.showModal();
  (kept.length > 0 ? part("snapshot") : part("cancel")).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const agreed = dialog.returnValue === "yes";
      if (!agreed && part("go").disabled) {
        toast(`${items.length === 1 ? `${items[0].name} was` : "They were"} not replaced. The snapshot goes on.`);
      }
      waiting.abort();
      resolve(agreed);
    }, { once: true });
  });
}

function words({ loss }) {
  const amount = amountOf(loss);
  if (!amount) {
    return ["A new container takes the place of this one. It begins without the files that this one wrote outside its volumes."];
  }
  const strong = document.createElement("strong");
  strong.textContent = amount;
  return ["A new container takes the place of this one. It begins without the ", strong, " that this one wrote outside its volumes."];
}

function hint(items, kept) {
  const volumes = "Volumes keep their data.";
  if (kept.length === 0) {
    return volumes;
  }
  return kept.length === items.length
    ? `${volumes} A snapshot keeps these files as an image.`
    : `${volumes} A snapshot keeps the files of ${kept.length} of them.`;
}

function progressOf(kept, done) {
  const [{ name }] = kept;
  return kept.length === 1
    ? `Taking a snapshot of ${name}. The replace follows.`
    : `Taking snapshots: ${done} of ${kept.length} done. The replace follows.`;
}

/** In a dialog that shows the loss itself, such as that of a rollback. */
async function keepThenSubmit(button) {
  const { form } = button;
  const { workspace: id, name } = form.dataset;
  const waiting = new AbortController();
  form.closest("dialog").addEventListener("close", () => waiting.abort(), { once: true });
  const buttons = form.querySelectorAll('[data-snapshot-first], [type="submit"]');
  buttons.forEach((element) => element.toggleAttribute("disabled", true));
  button.setAttribute("aria-busy", "true");
  try {
    await snapshotAll([{ id, name }], waiting.signal, () => toast(`Taking a snapshot of ${name}. The rest follows.`));
  } catch (error) {
    toast(error.message, "error");
    buttons.forEach((element) => element.toggleAttribute("disabled", false));
    return;
  } finally {
    button.removeAttribute("aria-busy");
  }
  if (waiting.signal.aborted) {
    toast(`${name} was not replaced. The snapshot goes on.`);
    return;
  }
  buttons.forEach((element) => element.toggleAttribute("disabled", false));
  form.requestSubmit();
}
