// Icons for what scripts draw; the same sprite that the templates use.

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  const sprite = document.querySelector('meta[name="icons"]').content;
  use.setAttribute("href", `${sprite}#${name}`);
  svg.append(use);
  return svg;
}

export function swapIcon(svg, name) {
  const use = svg.querySelector("use");
  use.setAttribute("href", `${use.getAttribute("href").split("#")[0]}#${name}`);
}
