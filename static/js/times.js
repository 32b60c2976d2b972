// Moments as distances from now, kept up to date; the exact time is in the tooltip.

const STEPS = [
  [60, "second", 1],
  [3600, "minute", 60],
  [86400, "hour", 3600],
  [86400 * 30, "day", 86400],
  [86400 * 365, "month", 86400 * 30],
  [Infinity, "year", 86400 * 365],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

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
  document.addEventListener("htmx:load", (event) => update(event.target));
  setInterval(() => update(document), 15_000);
}

function update(root) {
  for (const element of root.querySelectorAll("time[data-ago]")) {
    write(element);
  }
}

function write(element) {
  const moment = new Date(element.dateTime);
  if (Number.isNaN(moment.getTime())) {
    return;
  }
  const text = distance((moment.getTime() - Date.now()) / 1000);
  if (element.textContent !== text) {
    element.textContent = text;
    element.title = moment.toLocaleString();
  }
}

function distance(seconds) {
  const length = Math.abs(seconds);
  if (length < 5) {
    return "just now";
  }
  const [, unit, size] = STEPS.find(([limit]) => length < limit);
  return words.format(Math.trunc(seconds / size), unit);
}
