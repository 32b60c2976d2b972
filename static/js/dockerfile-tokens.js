// What each part of a Dockerfile's line is, for colours. Pure: text in, parts out, nothing is judged
// but the first word of an instruction.

const INSTRUCTIONS = new Set(
  ("ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL " +
    "STOPSIGNAL USER VOLUME WORKDIR").split(" "),
);
const PARTS =
  /(?<string>"(?:[^"\\]|\\.)*"|'[^']*')|(?<variable>\$\{[^}]*\}|\$[A-Za-z_]\w*)|(?<flag>(?<=\s)--[\w-]+(?==|\s|$))|(?<keyword>(?<=\s)(?:AS|NONE)(?=\s|$))|(?<more>\\\s*$)/g;
const HERE_DOCUMENT = /<<-?\s*(["']?)(\w+)\1/;

/**
 * How every line begins: "new" with an instruction, "more" of the one before, "text" of a here
 * document, "comment" or "blank".
 */
export function lineKinds(lines) {
  const kinds = [];
  let goesOn = false;
  let closing = "";
  for (const line of lines) {
    const trimmed = line.trim();
    if (closing) {
      kinds.push("text");
      closing = trimmed === closing ? "" : closing;
    } else if (trimmed.startsWith("#")) {
      // A comment between the lines of an instruction does not end it.
      kinds.push("comment");
    } else if (trimmed === "") {
      kinds.push("blank");
    } else {
      kinds.push(goesOn ? "more" : "new");
      goesOn = trimmed.endsWith("\\");
      closing = HERE_DOCUMENT.exec(line)?.[2] ?? "";
    }
  }
  return kinds;
}

/** [text, class] of the parts of one line, in order; without a class it is plain. */
export function lineParts(line, kind) {
  if (kind === "comment" || kind === "text") {
    return [[line, kind === "comment" ? "comment" : "string"]];
  }
  if (kind !== "new") {
    return rest(line);
  }
  const [, space, word, after] = /^(\s*)(\S*)(.*)$/s.exec(line);
  const known = INSTRUCTIONS.has(word.toUpperCase());
  const parts = [[space, ""], [word, known ? "instruction" : "unknown"]];
  const nested = word.toUpperCase() === "ONBUILD" && /^(\s+)(\S+)(.*)$/s.exec(after);
  if (nested && INSTRUCTIONS.has(nested[2].toUpperCase())) {
    return [...parts, [nested[1], ""], [nested[2], "instruction"], ...rest(nested[3])];
  }
  return [...parts, ...rest(after)];
}

/** The line, counted from 0, at which the instruction of this step begins; -1 if there is none. */
export function lineOfStep(lines, step) {
  const starts = lineKinds(lines).flatMap((kind, at) => (kind === "new" ? [at] : []));
  return starts[step - 1] ?? -1;
}

function rest(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(PARTS)) {
    const [kind] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    parts.push([text.slice(at, match.index), ""], [match[0], kind]);
    at = match.index + match[0].length;
  }
  parts.push([text.slice(at), ""]);
  return parts;
}
