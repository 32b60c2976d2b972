// Sizes as people type them ("512 MiB", "2g", plain bytes), with the engine's powers of 1024.

const FACTORS = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };
const PATTERN = /^([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?$/i;
const SMALLEST_LIKELY = 1024 * 1024;

/** Bytes, or null if the text is no size. */
export function parseSize(text) {
  const match = PATTERN.exec(text.trim());
  return match ? Math.round(Number(match[1]) * FACTORS[match[2].toLowerCase()]) : null;
}

export function describeSize(bytes) {
  for (const [unit, factor] of [["TiB", FACTORS.t], ["GiB", FACTORS.g], ["MiB", FACTORS.m]]) {
    if (bytes >= factor) {
      return `${Number((bytes / factor).toFixed(2))} ${unit}`;
    }
  }
  return `${bytes} bytes`;
}

/** Text that is taken for exactly as many bytes. */
export function exactSize(bytes) {
  for (const [unit, factor] of [["GiB", FACTORS.g], ["MiB", FACTORS.m]]) {
    if (bytes > 0 && bytes % factor === 0) {
      return `${bytes / factor} ${unit}`;
    }
  }
  return String(bytes);
}

/** Says under the input what it will be taken for. */
export function startSizes() {
  document.addEventListener("input", (event) => {
    const input = event.target;
    if (input.dataset.encode !== "bytes") {
      return;
    }
    const hint = document.getElementById(`${input.id}-hint`);
    hint.dataset.usual ??= hint.textContent;
    const bytes = parseSize(input.value);
    if (!input.value.trim()) {
      hint.textContent = hint.dataset.usual;
    } else if (bytes === null) {
      hint.textContent = "Write a number with KiB, MiB or GiB.";
    } else if (bytes > 0 && bytes < SMALLEST_LIKELY) {
      hint.textContent = `That is ${bytes} bytes. Did you mean ${input.value.trim()} MiB?`;
    } else {
      hint.textContent = `= ${describeSize(bytes)}, ${bytes.toLocaleString("en")} bytes`;
    }
  });
}
