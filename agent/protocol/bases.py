"""Which images of an engine nobody may take by name: the same rule on the server and on the agent.

An engine has one store for everybody, and asks nobody who may read an image of it. Builds and
snapshots lie there under `trailer/<id>`, and each image answers to any unique beginning of its id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.protocol import image_refs, naming
from agent.protocol.arguments import UNCLEAR, Arguments
from agent.protocol.dockerfile import escape_sign, instructions, lines_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

__all__ = [
    "Base",
    "dockerfile_bases",
    "dockerfile_problem",
    "escape_sign",
    "image_sources",
    "instructions",
    "reserved_problem",
]

_OWN: Final = re.compile(r"trailer/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HUB: Final = (image_refs.DOCKER_HUB, image_refs.HUB_API)
_ID: Final = re.compile(r"(?:sha256:)?[0-9a-f]{1,64}", re.IGNORECASE)
# What engines take for a stage; anything else behind AS is an error there.
_STAGE: Final = re.compile(r"[a-z][a-z0-9_.-]*")
# More digits are no number to an engine, but may be the beginning of an id.
_INDEX: Final = re.compile(r"[0-9]{1,9}")
# A flag whose name, end or parts are not what they seem once the engine took its quotes out. It
# looks for the end byte by byte: a part of another letter may pass for a space.
_DISGUISED: Final = re.compile(
    r"""--(?:.*[^!-~]|.*[\\`]|[^=]*["']|mount=.*["']|[^=]*=(?!(?:[^"']|"[^"]*"|'[^']*')*\Z))""",
    re.DOTALL,
)


def reserved_problem(ref: str) -> str:
    """Why an image may not be pulled from or pushed to this reference, or empty."""
    if image_refs.engine_id(ref) or (":" in ref and _ID.fullmatch(ref)):
        return f"{ref} may be the id of an image on the host, which is not taken."
    # In any case and behind any name of the Hub: wider than what engines take for the same.
    found = image_refs.find(ref.lower())
    if found is None:
        is_own = bool(_OWN.search(ref.lower()))
    else:
        is_own = found.server in _HUB and bool(_OWN.fullmatch(found.path.removeprefix("library/")))
    if naming.is_sources_image(ref.lower()):
        return f"{ref} is what Trailer fetched for a build. Choose an image of a registry."
    if is_own:
        return (
            f"{ref} is where Trailer keeps a build or snapshot. "
            "Choose the image itself, or a reference of a registry."
        )
    return ""


def dockerfile_problem(dockerfile: str, build_args: Mapping[str, str]) -> str:
    """Why this may not be built, or empty: it must not name what others made on the host."""
    if problem := lines_problem(dockerfile):
        return problem
    for base in dockerfile_bases(dockerfile, build_args):
        if problem := base.problem():
            return problem
    return ""


@dataclass(frozen=True)
class Base:
    """An image that a Dockerfile begins with, copies from or mounts; never one of its stages."""

    text: str
    # Behind FROM: there its own triggers run.
    begins: bool = False
    # What FROM says beside it, with its variables filled in as far as they are known.
    platform: str = ""
    # The stages before it.
    stages: frozenset[str] = frozenset()

    def is_clear(self) -> bool:
        return not UNCLEAR.search(self.text)

    def problem(self) -> str:
        if not self.is_clear():
            return f"It is not clear which image {self.text} is. Write its name plainly."
        if _ID.fullmatch(self.text):
            return (
                f"{self.text} may be the id of an image on the host, which is not taken. "
                f"Write a name with its tag, like {self.text.rpartition(':')[2]}:latest."
            )
        return reserved_problem(self.text)


def dockerfile_bases(
    dockerfile: str, build_args: Mapping[str, str], target: str = ""
) -> Iterator[Base]:
    """In the engine's own reading: a stage counts from the line after its FROM on. With a target
    those up to its stage, which is where an engine stops."""
    stages: set[str] = set()
    arguments = Arguments(build_args)
    number, name = -1, ""
    for words in instructions(dockerfile):
        verb, rest = words[0].upper(), words[1:]
        if verb == "ONBUILD" and rest:
            verb, rest = rest[0].upper(), rest[1:]
        if verb == "ARG" and number < 0:
            arguments.declare(rest)
        elif verb == "FROM":
            if target and target.lower() in (name, str(number)):
                return
            yield from _begun(rest, arguments, stages)
            number, name = number + 1, _stage_name(rest)
            stages |= {name} - {""}
        else:
            for text in image_sources(verb, rest, stages):
                yield Base(text, stages=frozenset(stages))


def image_sources(verb: str, words: list[str], stages: Set[str]) -> Iterator[str]:
    """Images that an instruction copies from or mounts."""
    if verb not in {"COPY", "RUN"}:
        return
    for text in _sources(words):
        if text.lower() not in stages and not _INDEX.fullmatch(text):
            yield text


def _begun(words: list[str], arguments: Arguments, stages: Set[str]) -> Iterator[Base]:
    flags = [word for word in words if word.startswith("--")]
    named = [word for word in words if not word.startswith("--")]
    for flag in flags:
        if _DISGUISED.match(flag):
            yield Base(flag)
    if not named:
        return
    # One that is empty in the end may be an image to an engine that knows more variables.
    text = arguments.expanded(named[0]) or named[0]
    if text != "scratch" and text.lower() not in stages:
        platform = next((flag for flag in flags if flag.startswith("--platform=")), "")
        yield Base(
            text,
            begins=True,
            platform=arguments.expanded(platform.removeprefix("--platform=")),
            stages=frozenset(stages),
        )


def _stage_name(words: list[str]) -> str:
    named = [word for word in words if not word.startswith("--")]
    if len(named) != 3 or named[1].upper() != "AS":
        return ""
    name = named[2].lower()
    return name if _STAGE.fullmatch(name) else ""


def _sources(words: list[str]) -> Iterator[str]:
    """Values of `--from=` and of `from=` in a `--mount=`; flags come before everything else."""
    for word in words:
        if not word.startswith("--"):
            return
        if _DISGUISED.match(word):
            yield word
            return
        flag, _, value = word.partition("=")
        if flag == "--from":
            yield value
        elif flag == "--mount":
            for part in value.split(","):
                key, _, image = part.partition("=")
                if key.lower() == "from":
                    yield image
