// Which charts a host and a workspace have: their lines, units and upper ends.

import { bytes, percent, plain, rate } from "./amounts.js";

const line = (field, name, colour) => ({ field, name, colour });

// Marks on an axis of bytes lie at powers of two.
const POWERS = Array.from({ length: 52 }, (_, power) => 2 ** power);

const NETWORK = {
  title: "Network",
  format: rate,
  marks: POWERS,
  lines: [line("network_rx_rate", "in", "blue"), line("network_tx_rate", "out", "amber")],
};
const DISK = {
  title: "Disk I/O",
  format: rate,
  marks: POWERS,
  lines: [line("disk_read_rate", "read", "blue"), line("disk_write_rate", "written", "amber")],
};
const PROCESSES = { title: "Processes", format: plain, lines: [line("processes", "", "grey")] };

export const KINDS = {
  host: [
    { title: "CPU", format: percent, most: 100, lines: [line("cpu_percent", "", "accent")] },
    { title: "Memory", format: bytes, marks: POWERS, limit: "memory_total_bytes", lines: [line("memory_bytes", "", "accent")] },
    NETWORK,
    DISK,
    { title: "Load", format: plain, lines: [line("load", "", "grey")] },
    PROCESSES,
  ],
  workspace: [
    { title: "CPU", format: percent, lines: [line("cpu_percent", "", "accent")] },
    { title: "Memory", format: bytes, marks: POWERS, limit: "memory_limit_bytes", lines: [line("memory_bytes", "", "accent")] },
    NETWORK,
    DISK,
    PROCESSES,
  ],
};

/** One set per card: each has its own moments. */
export const GPU = [
  { title: "GPU", format: percent, most: 100, lines: [line("utilization_percent", "", "accent")] },
  { title: "GPU memory", format: bytes, marks: POWERS, limit: "memory_total_bytes", lines: [line("memory_bytes", "", "accent")] },
  { title: "GPU heat", format: (value) => `${plain(value)} °C`, lines: [line("temperature_celsius", "", "amber")] },
  { title: "GPU power", format: (value) => `${plain(value)} W`, lines: [line("power_watts", "", "amber")] },
];

/** Columns as the chart library wants them; where samples are missing the line is broken. */
export function columns(points, kind, resolution) {
  const times = [];
  const values = kind.lines.map(() => []);
  let before = null;
  for (const point of points) {
    const at = Date.parse(point.at) / 1000;
    if (before !== null && at - before > resolution * 2.5) {
      times.push(before + resolution);
      values.forEach((column) => column.push(null));
    }
    times.push(at);
    kind.lines.forEach(({ field }, index) => values[index].push(point[field]));
    before = at;
  }
  return [times, ...values];
}

/** Whether there is anything to draw. */
export function isKnown(points, kind) {
  return points.some((point) => kind.lines.some(({ field }) => point[field] !== null));
}

/** The upper end of the axis: the limit if there is one, else a little above the highest value. */
export function upperEnd(kind, points, highest) {
  const limit = kind.limit ? points.at(-1)?.[kind.limit] : null;
  const end = kind.most ?? limit;
  return end && highest <= end * 1.001 ? end : Math.max(highest * 1.15, 1);
}
