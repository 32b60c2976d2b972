// Colours and line numbers for a Dockerfile's text field. The field stays what it is, for the form,
// the keyboard and a screen reader; what is painted lies behind it and is nothing but text and spans.

import { lineKinds, lineOfStep, lineParts } from "./dockerfile-tokens.js";

// Lines painted above and below those in view, so that scrolling shows no empty edge.
const MARGIN = 20;
// A line longer than this is shown as the field itself shows it, without colours.
const LONGEST_LINE = 4000;
const PARSE_ERROR = /dockerfile parse error (?:on )?line (\d+)/i;
const editors = new WeakMap();

export function startDockerfileEditor() {
  dress(document);
  document.addEventListener("htmx:load", (event) => dress(event.target));
  document.addEventListener("trailer:step", (event) => failedAt(event.detail.step));
  document.addEventListener("reset", (event) => {
    const field = event.target.querySelector('textarea[name="dockerfile"]');
    // The values come back after the event.
    setTimeout(() => editors.get(field)?.edited());
  });
}

function dress(root) {
  for (const field of root.querySelectorAll('textarea[name="dockerfile"]')) {
    if (!editors.has(field)) {
      editors.set(field, new Editor(field));
    }
  }
}

/** The log tells at which step a build is; if that is where it failed, its line is marked. */
function failedAt(step) {
  const field = document.querySelector('[data-failed] textarea[name="dockerfile"]');
  editors.get(field)?.mark(step);
}

class Editor {
  #field;
  #paint;
  #numbers;
  #lines = [];
  #kinds = [];
  #marked = -1;
  #planned = false;

  constructor(field) {
    this.#field = field;
    const frame = make("div", "editor");
    this.#numbers = make("div", "editor-numbers");
    this.#paint = make("div", "editor-paint");
    const back = make("div", "editor-back");
    back.setAttribute("aria-hidden", "true");
    const gutter = make("div", "editor-gutter");
    gutter.append(this.#numbers);
    back.append(this.#paint, gutter);
    field.replaceWith(frame);
    frame.append(back, field);
    field.classList.add("editor-field");
    field.wrap = "off";
    field.addEventListener("input", () => this.edited());
    field.addEventListener("scroll", () => this.#plan(), { passive: true });
    field.addEventListener("keydown", (event) => this.#key(event));
    // Also when a closed part of the page opens: only then has the field a size.
    new ResizeObserver(() => this.#plan()).observe(field);
    this.#read();
    const told = PARSE_ERROR.exec(frame.closest("[data-failed]")?.dataset.failed ?? "");
    this.#marked = told ? Number(told[1]) - 1 : -1;
    this.#plan();
  }

  edited() {
    this.#marked = -1;
    this.#read();
    this.#plan();
  }

  /** A line that the message itself names is known better. */
  mark(step) {
    if (this.#marked < 0) {
      this.#marked = lineOfStep(this.#lines, step);
      this.#plan();
    }
  }

  #read() {
    this.#lines = this.#field.value.split("\n");
    this.#kinds = lineKinds(this.#lines);
  }

  #plan() {
    if (!this.#planned) {
      this.#planned = true;
      requestAnimationFrame(() => {
        this.#planned = false;
        this.#draw();
      });
    }
  }

  /** Only what is in view: a Dockerfile of a megabyte stays as quick as a short one. */
  #draw() {
    const { scrollTop, scrollLeft, clientHeight } = this.#field;
    const height = Number.parseFloat(getComputedStyle(this.#field).lineHeight);
    const first = Math.max(0, Math.floor(scrollTop / height) - MARGIN);
    const last = Math.min(this.#lines.length, Math.ceil((scrollTop + clientHeight) / height) + MARGIN);
    const shown = this.#lines.slice(first, last);
    const plain = shown.some((line) => line.length > LONGEST_LINE);
    this.#field.classList.toggle("is-plain", plain);
    this.#paint.replaceChildren(...(plain ? [] : shown.map((line, at) => this.#line(line, first + at))));
    this.#numbers.replaceChildren(...shown.map((_, at) => this.#number(first + at)));
    const top = first * height - scrollTop;
    this.#paint.style.transform = `translate(${-scrollLeft}px, ${top}px)`;
    this.#numbers.style.transform = `translateY(${top}px)`;
  }

  #line(line, at) {
    const element = make("div", at === this.#marked ? "editor-line is-wrong" : "editor-line");
    for (const [text, kind] of lineParts(line, this.#kinds[at])) {
      if (text && kind) {
        const span = make("span", `code-${kind}`);
        span.textContent = text;
        element.append(span);
      } else if (text) {
        element.append(text);
      }
    }
    return element;
  }

  #number(at) {
    const element = make("div", at === this.#marked ? "is-wrong" : "");
    element.textContent = at + 1;
    return element;
  }

  /** Tab leaves the field, as everywhere; a new line begins below the one before it. */
  #key(event) {
    const { selectionStart, selectionEnd, value } = this.#field;
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const begin = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const indent = /^[ \t]*/.exec(value.slice(begin, selectionStart))[0];
    if (indent && selectionStart === selectionEnd) {
      event.preventDefault();
      // The only way that the browser's own undo knows of.
      document.execCommand("insertText", false, `\n${indent}`);
    }
  }
}

function make(tag, name) {
  const element = document.createElement(tag);
  element.className = name;
  return element;
}
