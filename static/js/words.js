// Command lines: words as in a shell, with quotes; or a JSON list, taken as it is.

/** A list of words; text that cannot be one is returned as it is, for the API to refuse. */
export function parseWords(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) {
    try {
      return JSON.parse(trimmed);
    } catch {
      return text;
    }
  }
  return split(trimmed);
}

/** A health check's test: a list as it is, anything else is a line for the container's shell. */
export function parseTest(text) {
  const trimmed = text.trim();
  return trimmed.startsWith("[") ? parseWords(trimmed) : ["CMD-SHELL", trimmed];
}

function split(text) {
  const words = [];
  let word = null;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quote) {
      if (sign === quote) {
        quote = "";
      } else if (sign === "\\" && quote === '"' && '"\\'.includes(text[at + 1])) {
        word += text[(at += 1)];
      } else {
        word += sign;
      }
    } else if (sign === "'" || sign === '"') {
      quote = sign;
      word ??= "";
    } else if (sign === "\\" && at + 1 < text.length) {
      word = (word ?? "") + text[(at += 1)];
    } else if (/\s/.test(sign)) {
      if (word !== null) {
        words.push(word);
      }
      word = null;
    } else {
      word = (word ?? "") + sign;
    }
  }
  return word === null ? words : [...words, word];
}
