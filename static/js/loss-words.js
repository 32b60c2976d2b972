// What a replace would throw away, in words and as a list: templates/partials/loss.html shows it.

import { bytes } from "./amounts.js";
import { icon } from "./icons.js";

const WHY = {
  removed: "Removed: the file has no such service any more.",
  newer_image: "The registry has a newer image.",
  pulled_again: "Only if its image has moved.",
  may_change: "Only if the new settings change it.",
};
const UNKNOWN = "What its container wrote outside its volumes is not known.";

/** "1.2 MiB in 34 files", or "" when it is not known. */
export function amountOf({ writable_layer: layer }) {
  if (!layer) {
    return "";
  }
  const files = `${layer.file_count.toLocaleString("en")} file${layer.file_count === 1 ? "" : "s"}`;
  return `${layer.is_whole === false ? "about " : ""}${bytes(layer.size_bytes)} in ${files}`;
}

/** One sentence, for the preview of an edit. */
export function lossSentence(loss) {
  const amount = amountOf(loss);
  return amount
    ? `Lost with it: ${amount} that it wrote outside its volumes.`
    : loss.writable_layer_reason || UNKNOWN;
}

/** The largest paths, or why there are none. */
export function lossDetails(loss) {
  const parts = [];
  const layer = loss.writable_layer;
  if (!layer) {
    parts.push(notice(loss.writable_layer_reason || UNKNOWN));
  } else if (layer.paths.length > 0) {
    parts.push(pathList(layer));
  } else if (loss.writable_layer_reason) {
    parts.push(hint(loss.writable_layer_reason));
  }
  return parts;
}

/** One line for each of several workspaces. */
export function lossRows(items) {
  const list = scrolling("Workspaces that would lose files");
  for (const { name, why, loss } of items) {
    const item = document.createElement("li");
    item.className = "loss-workspace";
    const largest = loss.writable_layer?.paths[0];
    const about = [WHY[why], largest ? `Largest: ${largest.path}` : loss.writable_layer_reason];
    item.append(
      text("strong", name),
      text("span", amountOf(loss) || "not known", "loss-size"),
      text("span", about.filter(Boolean).join(" "), "loss-more muted"),
    );
    list.append(item);
  }
  return list;
}

function pathList(layer) {
  const list = scrolling("Largest files that would be lost");
  for (const { path, size_bytes: size } of layer.paths) {
    const item = document.createElement("li");
    item.append(text("bdi", path, "mono"), text("span", bytes(size), "loss-size"));
    list.append(item);
  }
  const more = layer.file_count - layer.paths.length;
  if (more > 0) {
    list.append(text("li", `and ${more.toLocaleString("en")} more`, "muted"));
  }
  return list;
}

/** Long ones scroll, which the keyboard must be able to do too. */
function scrolling(label) {
  const list = document.createElement("ul");
  list.className = "loss-list";
  list.tabIndex = 0;
  list.setAttribute("aria-label", label);
  return list;
}

function notice(words) {
  const box = document.createElement("p");
  box.className = "notice notice-amber";
  box.append(icon("triangle-alert"), text("span", words));
  return box;
}

function hint(words) {
  return text("p", words, "hint");
}

function text(tag, words, classes = "") {
  const element = document.createElement(tag);
  element.textContent = words;
  element.className = classes;
  return element;
}
