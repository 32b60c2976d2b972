// Moments as distances from now, kept up to date; the exact time is in the tooltip.

const STEPS = [
  [60, "s", 1],
  [3600, "min", 60],
  [86400, "h", 3600],
  [Infinity, "d", 86400],
];
// Beyond this a date says more than a distance.
const LONGEST = 86400 * 60;

export function ago(moment) {
  const element = document.createElement("time");
  element.className = "nowrap";
  element.dateTime = moment;
  element.dataset.ago = "";
  write(element);
  return element;
}

export function startTimes() {
  update(document);
  // Before the swapped part is painted: a bare date would flash up.
  document.addEventListener("htmx:afterSwap", () => update(document));
  setInterval(() => update(document), 15_000);
  setInterval(() => document.querySelectorAll("time[data-elapsed]").forEach(writeElapsed), 1000);
}

function update(root) {
  for (const element of root.querySelectorAll("time[data-ago]")) {
    write(element);
  }
  root.querySelectorAll("time[data-elapsed]").forEach(writeElapsed);
}

/** How long something under way has taken so far. */
function writeElapsed(element) {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(element.dateTime).getTime()) / 1000));
  const minutes = Math.floor(seconds / 60);
  element.textContent = minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

function write(element) {
  const moment = new Date(element.dateTime);
  if (Number.isNaN(moment.getTime())) {
    return;
  }
  const text = distance(moment);
  if (element.textContent !== text) {
    element.textContent = text;
    element.title = moment.toLocaleString();
  }
}

/** Clocks differ a little: a moment that is slightly ahead is now. */
function distance(moment) {
  const seconds = (Date.now() - moment.getTime()) / 1000;
  const length = Math.abs(seconds);
  if (length < 5) {
    return "just now";
  }
  if (length > LONGEST) {
    return moment.toLocaleDateString();
  }
  const [, unit, size] = STEPS.find(([limit]) => length < limit);
  const words = `${Math.trunc(length / size)} ${unit}`;
  return seconds > 0 ? `${words} ago` : `in ${words}`;
}
