// What a line leaves switched on for the next one: lines are drawn one by one, in any order, so each
// has to say itself in which colours it begins.

import { StyleState } from "./ansi-style.js";

const ESCAPE = 27;
const LONGEST = 128;
const COLOURS = /\x1b\[([0-9;:]*)m/g;

/** The sequences, as bytes, that a line after this one begins with; mostly none. */
export function leftOn(bytes) {
  if (!bytes.includes(ESCAPE)) {
    return NOTHING;
  }
  const style = new StyleState();
  let sequences = "";
  for (const [sequence, given] of new TextDecoder("latin1").decode(bytes).matchAll(COLOURS)) {
    style.change(given);
    sequences = style.classes === "" ? "" : (sequences + sequence).slice(-LONGEST);
  }
  // A sequence that was cut through must not show as text.
  return new TextEncoder().encode(sequences.slice(Math.max(0, sequences.indexOf("\x1b"))));
}

export const NOTHING = new Uint8Array(0);
