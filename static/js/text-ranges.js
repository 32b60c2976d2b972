// Where words stand in a line: ranges that the browser can mark without touching the line.

const MOST_IN_A_LINE = 50;

/** `query` in small letters. Letters whose small form has another length shift what follows them. */
export function rangesIn(line, query) {
  const text = line.textContent.toLowerCase();
  const ranges = [];
  for (let at = text.indexOf(query); at >= 0 && ranges.length < MOST_IN_A_LINE; at = text.indexOf(query, at + query.length)) {
    const from = placeOf(line, at);
    const to = placeOf(line, at + query.length);
    if (from && to) {
      const range = document.createRange();
      range.setStart(...from);
      range.setEnd(...to);
      ranges.push(range);
    }
  }
  return ranges;
}

/** The text node, and the place in it, of a character of the line. */
function placeOf(line, at) {
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  let rest = at;
  while (walker.nextNode()) {
    if (rest <= walker.currentNode.length) {
      return [walker.currentNode, rest];
    }
    rest -= walker.currentNode.length;
  }
  return null;
}
