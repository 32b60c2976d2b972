// The terminal writes style elements and style attributes, which our content security policy forbids.
// Here both go through the style sheets' own interface, which the policy allows because no text of a
// page can reach it. This reaches into the terminal's inside: its version is fixed in package.json, and
// a test prints text in full colour and listens for violations.

/** Opens a terminal whose elements set their styles in the permitted way. */
export function openStrictly(terminal, parent) {
  // Its own elements are made while it opens, and from the page's document.
  document.createElement = create;
  try {
    terminal.open(parent);
  } finally {
    delete document.createElement;
  }
  // Its rows are made later.
  terminal._core._renderService._renderer.value._rowFactory._document = { createElement: create };
}

function create(tag) {
  if (tag === "style") {
    return styleHolder();
  }
  const element = make(tag);
  element.setAttribute = setAttribute;
  return element;
}

function make(tag) {
  return Document.prototype.createElement.call(document, tag);
}

function setAttribute(name, value) {
  if (name === "style") {
    this.style.cssText = value;
  } else {
    Element.prototype.setAttribute.call(this, name, value);
  }
}

/** Takes the text of a style element and adopts it as a style sheet, until it is removed. */
function styleHolder() {
  const sheet = new CSSStyleSheet();
  const holder = make("span");
  holder.hidden = true;
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(holder, "textContent", { set: (text) => sheet.replaceSync(text) });
  holder.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(holder);
  };
  return holder;
}
