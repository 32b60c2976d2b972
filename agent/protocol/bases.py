"""Which images of an engine nobody may take by name: the same rule on the server and on the agent.

An engine has one store for everybody, and asks nobody who may read an image of it. Builds and
snapshots lie there under `trailer/<id>`, and each image answers to any unique beginning of its id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OWN: Final = re.compile(r"trailer/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![^:@])")
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{1,64}", re.IGNORECASE)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*=\s*(\S+)\s*\Z")
_VARIABLE = re.compile(
    r"\$(?:(?P<bare>\w+)|\{(?P<name>\w+)(?:(?P<sign>:?[-+])(?P<word>[^${}]*))?\})", re.ASCII
)
_UNCLEAR = re.compile(r"[\"'`$\\{}]")


def reserved_problem(ref: str) -> str:
    """Why an image may not be pulled from or pushed to this reference, or empty."""
    name = ref.lower()
    for prefix in ("index.docker.io/", "registry-1.docker.io/", "docker.io/", "library/"):
        name = name.removeprefix(prefix)
    if _OWN.match(name):
        return (
            f"{ref} is where Trailer keeps a build or snapshot. "
            "Choose the image itself, or a reference of a registry."
        )
    return ""


def dockerfile_problem(dockerfile: str, build_args: Mapping[str, str]) -> str:
    """Why this may not be built, or empty: it must not name what others made on the host."""
    for base in dockerfile_bases(dockerfile, build_args):
        if problem := base.problem():
            return problem
    return ""


@dataclass(frozen=True)
class Base:
    """An image that a Dockerfile begins with, copies from or mounts; never one of its stages."""

    text: str

    def is_clear(self) -> bool:
        return not _UNCLEAR.search(self.text)

    def problem(self) -> str:
        if not self.is_clear():
            return f"It is not clear which image {self.text} is. Write its name plainly."
        if _ID.fullmatch(self.text):
            return (
                f"{self.text} may be the id of an image on the host, which is not taken. "
                f"Write a name with its tag, like {self.text.rpartition(':')[2]}:latest."
            )
        return reserved_problem(self.text)


def dockerfile_bases(dockerfile: str, build_args: Mapping[str, str]) -> Iterator[Base]:
    """In the engine's own reading: a stage counts from the line after its FROM on."""
    stages: set[str] = set()
    known: dict[str, str] = {}
    begun = False
    for words in _instructions(dockerfile):
        verb, rest = words[0].upper(), words[1:]
        if verb == "ONBUILD" and rest:
            verb, rest = rest[0].upper(), rest[1:]
        if verb == "ARG" and not begun:
            known |= _declared(rest, known, build_args)
        elif verb == "FROM":
            begun = True
            named = [word for word in rest if not word.startswith("--")]
            text = _expanded(named[0], known) if named else ""
            if text and text != "scratch" and text.lower() not in stages:
                yield Base(text)
            if len(named) == 3 and named[1].upper() == "AS":
                stages.add(named[2].lower())
        elif verb in {"COPY", "RUN"}:
            for text in _sources(rest):
                if text.lower() not in stages and not text.isdecimal():
                    yield Base(text)


def escape_sign(lines: list[str]) -> str:
    """The sign that joins lines: a directive above everything else may choose another."""
    for line in lines:
        found = _DIRECTIVE.match(line)
        if not found:
            break
        if found[1].lower() == "escape":
            return found[2]
    return "\\"


def _instructions(dockerfile: str) -> Iterator[list[str]]:
    """The words of each, with joined lines put together and comments left out."""
    lines = dockerfile.removeprefix("\ufeff").split("\n")
    escape, text = escape_sign(lines), ""
    for line in lines:
        bare = line.rstrip()
        if not bare or bare.lstrip().startswith("#"):
            # Neither ends an instruction that goes on.
            continue
        goes_on = bare.endswith(escape)
        text += bare.removesuffix(escape)
        if goes_on:
            continue
        if words := text.split():
            yield words
        text = ""
    if words := text.split():
        yield words


def _sources(words: list[str]) -> Iterator[str]:
    """Values of `--from=` and of `from=` in a `--mount=`; flags come before everything else."""
    for word in words:
        if not word.startswith("--"):
            return
        flag, _, value = word.partition("=")
        if flag == "--from":
            yield value
        elif flag == "--mount":
            for part in value.split(","):
                if part.startswith("from="):
                    yield part.removeprefix("from=")


def _declared(
    words: list[str], known: Mapping[str, str], build_args: Mapping[str, str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, _, default = word.partition("=")
        found[name] = build_args.get(name, _expanded(default, {**known, **found}))
    return found


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """With its variables filled in; what this does not understand stays, and is not clear."""

    def value(found: re.Match[str]) -> str:
        given = known.get(found["bare"] or found["name"])
        sign, word = found["sign"] or "", found["word"] or ""
        is_there = bool(given) if sign.startswith(":") else given is not None
        if sign.endswith("-"):
            return (given or "") if is_there else word
        if sign.endswith("+"):
            return word if is_there else ""
        return given or ""

    quote = text[0] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else ""
    inner = text[1:-1] if quote else text
    return inner if quote == "'" else _VARIABLE.sub(value, inner)
