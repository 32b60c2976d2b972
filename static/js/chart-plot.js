// One chart: the library's canvas with a caption that tells the value under the pointer, or the last.

const HEIGHT = 150;
const WIDEST_LABEL = 64;

let loading = null;

/** The library is loaded when the first chart is opened, not with every page. */
export function loadPlot() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("../vendor/uplot/uPlot.min.css", import.meta.url).href;
    const script = document.createElement("script");
    script.src = new URL("../vendor/uplot/uPlot.iife.min.js", import.meta.url).href;
    script.addEventListener("load", () => resolve(window.uPlot));
    script.addEventListener("error", () => {
      loading = null;
      reject(new Error("The chart library could not be loaded."));
    });
    document.head.append(style, script);
  });
  return loading;
}

export function plot(parent, kind, title, sync) {
  const figure = document.createElement("figure");
  figure.className = "chart";
  const caption = document.createElement("figcaption");
  const name = document.createElement("span");
  name.className = "chart-title";
  name.textContent = title;
  const values = document.createElement("span");
  values.className = "chart-values";
  caption.append(name, values);
  const canvas = document.createElement("div");
  canvas.className = "chart-canvas";
  canvas.setAttribute("role", "img");
  figure.append(caption, canvas);
  parent.append(figure);
  const chart = new window.uPlot(options(kind, canvas, sync, (at) => tell(chart, kind, values, at)), null, canvas);
  return {
    show(data, [from, to], end, span) {
      chart.setData(data, false);
      chart.setScale("x", { min: from, max: to });
      chart.setScale("y", { min: 0, max: end });
      tell(chart, kind, values, chart.cursor.idx);
      canvas.setAttribute("aria-label", summary(data, kind, title, span));
    },
    resize() {
      const width = canvas.clientWidth;
      if (width > 0 && width !== chart.width) {
        chart.setSize({ width, height: HEIGHT });
      }
    },
    destroy() {
      chart.destroy();
      figure.remove();
    },
  };
}

function options(kind, canvas, sync, moved) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: colour("ink-3"),
    font: "11px Inter Variable, system-ui, sans-serif",
    grid: { stroke: colour("line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: Math.max(canvas.clientWidth, 120),
    height: HEIGHT,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: sync, setSeries: false }, y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { auto: false } },
    axes: [
      { ...axis, size: 28, grid: { show: false }, space: 56, values: (_, marks) => marks.map(clock) },
      { ...axis, size: WIDEST_LABEL, space: 34, incrs: kind.marks, values: (_, marks) => marks.map((mark) => kind.format(mark)) },
    ],
    series: [
      {},
      ...kind.lines.map((line, index) => ({
        stroke: colour(line.colour),
        width: 1.5,
        // Colours are written with six digits; two more make them translucent.
        fill: index === 0 ? `${colour(line.colour)}1f` : undefined,
        points: { show: (_, __, from, to) => to - from < 2 },
        spanGaps: false,
      })),
    ],
    hooks: { setCursor: [(chart) => moved(chart.cursor.idx)] },
  };
}

/** Hours of the day; at midnight the date, which long ranges need. */
function clock(seconds) {
  const moment = new Date(seconds * 1000);
  const isMidnight = moment.getHours() === 0 && moment.getMinutes() === 0;
  return isMidnight
    ? moment.toLocaleDateString(undefined, { day: "numeric", month: "short" })
    : moment.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
}

function tell(chart, kind, element, at) {
  const index = at ?? (chart.data[0]?.length ?? 0) - 1;
  const parts = kind.lines.map((line, number) => {
    const value = chart.data[number + 1]?.[index];
    const part = document.createElement("span");
    part.className = `chart-value chart-${line.colour}`;
    part.textContent = `${value === null || value === undefined ? "–" : kind.format(value)}${line.name ? ` ${line.name}` : ""}`;
    return part;
  });
  if (at !== null && at !== undefined && chart.data[0][at] !== undefined) {
    const when = document.createElement("span");
    when.className = "muted";
    when.textContent = new Date(chart.data[0][at] * 1000).toLocaleTimeString(undefined, { hour12: false });
    parts.unshift(when);
  }
  element.replaceChildren(...parts);
}

function summary(data, kind, title, span) {
  const told = kind.lines.map((line, index) => {
    const values = data[index + 1].filter((value) => value !== null);
    if (values.length === 0) {
      return "";
    }
    const [low, high] = [Math.min(...values), Math.max(...values)].map(kind.format);
    return `${line.name} now ${kind.format(values.at(-1))}, from ${low} to ${high}`.trim();
  });
  return `${title} over ${span}: ${told.filter(Boolean).join("; ")}`;
}
