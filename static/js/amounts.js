// Amounts as meters and charts show them: three digits are enough.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value) {
  let amount = value;
  let unit = 0;
  while (amount >= 1000 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${digits(amount)} ${UNITS[unit]}`;
}

export function rate(value) {
  return `${bytes(value)}/s`;
}

export function percent(value) {
  return `${digits(value)} %`;
}

export function plain(value) {
  return digits(value);
}

function digits(value) {
  return String(value >= 100 ? Math.round(value) : Number(value.toPrecision(2)));
}
