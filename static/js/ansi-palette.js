// The 240 fixed colours of terminals as a style sheet; the first 16 are in ansi.css. Made here, since
// 480 rules written out would be a file that nobody reads; style sheets made by script need no leave
// from the page's content policy.

import { paletteColour } from "./ansi-style.js";

const GROUND_LUMINANCE = 0.009;
const READABLE = 4.5;

export function installPalette() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules().join("\n"));
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

function rules() {
  const found = [];
  for (let number = 16; number < 256; number += 1) {
    const colour = paletteColour(number);
    const lifted = readable(colour);
    found.push(`.ansi-bg-${number}{background:${css(colour)}}`);
    found.push(`.ansi-fg-${number}{color:${css(lifted)}}`);
    if (lifted !== colour) {
      // On a ground of its own the colour is what the program meant.
      found.push(`.ansi-on.ansi-fg-${number}{color:${css(colour)}}`);
    }
  }
  return found;
}

/** Dark colours are made lighter until they can be read on the log's dark ground. */
function readable(colour) {
  let shown = colour;
  while ((luminance(shown) + 0.05) / (GROUND_LUMINANCE + 0.05) < READABLE) {
    shown = shown.map((value) => Math.min(255, Math.ceil(value + (255 - value) * 0.1)));
  }
  return shown;
}

function luminance(colour) {
  const [red, green, blue] = colour.map((value) => (value / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function css(colour) {
  return `rgb(${colour.join(" ")})`;
}
