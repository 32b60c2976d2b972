"""What the ADD lines of a Dockerfile fetch from elsewhere: one reading for server and agent. Pure.

An engine would fetch it from its host's own network. The agent does that in its place, from
judged addresses only; so what is not certain to be a file of the build is read here, whatever
quotes, escapes and variables make of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from agent.protocol.addresses import BadEntry, BadHost, Place, host_name, literal_refused
from agent.protocol.arguments import Arguments
from agent.protocol.dockerfile import escape_sign, read, split_lines
from agent.protocol.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent.protocol.dockerfile import Instruction
    from agent.protocol.variables import Value

_PORTS: Final = {"http": 80, "https": 443}
# Git and other addresses as BuildKit reads them, and a bit more: schemes in any case, user@host:.
_ELSEWHERE: Final = re.compile(r"[A-Za-z0-9+.-]*://|[^/]*@[^/]*:")
# However it goes on behind this it is a file of the build.
_OF_THE_BUILD: Final = re.compile(r"[^$:\"'`\\]*/")
_DOUBTFUL: Final = re.compile(r"[$\"'`\\]")
# An engine looks for the end byte by byte: a part of another letter may pass for a space.
_PLAIN_FLAG: Final = re.compile(
    r"""--[a-z-]+(?:=(?:[^"'`\\\s\x7f-\U0010ffff]|"[!#-\[\]-_a-~]*"|'[!-&(-\[\]-_a-~]*')*)?"""
)
_FLAGS: Final = frozenset({"chown", "chmod", "link", "checksum"})
_CHECKSUM: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LONGEST_URL: Final = 8000
_LONGEST_NAME: Final = 255
_SHOWN: Final = 200


class BadSource(ValueError):
    """A source that nobody fetches; a sentence that says why."""


@dataclass(frozen=True)
class Source:
    """`url` is an http(s) address without `user` (name and password, as they stand in it)."""

    url: str
    place: Place
    user: str = field(default="", repr=False)

    def problem(self, allow: Sequence[str]) -> str:
        """What can be said without asking a name server."""
        try:
            is_refused = literal_refused(allow, self.place)
        except BadEntry as problem:
            return f"TRAILER_BUILD_ALLOW has an entry that means nothing: {problem}."
        if not is_refused:
            return ""
        return (
            f"{self.place.host} is an address of this machine or of a private network, from where "
            "builds fetch nothing. An administrator can allow it with TRAILER_BUILD_ALLOW."
        )

    def file_name(self, *, buildkit: bool) -> str:
        """As the builder takes it from the address; empty where that has none."""
        path = unquote(urlsplit(self.url).path, errors="surrogateescape")
        if buildkit:
            path = path.rstrip("/")
        name = path.rpartition("/")[2]
        if name in {".", ".."} or "\0" in name or len(name) > _LONGEST_NAME:
            raise BadSource(f"The address {self.url[:_SHOWN]} has no name for a file at its end.")
        return name


@dataclass(frozen=True)
class Add:
    """An ADD line that fetches something, or that may seem to an engine to do so. Of `sources`
    those of the build are texts. `destination` is as it is written; `base` is the image that the
    stage begins with, and an ENV of it named like one of `arguments` would change the meaning."""

    first: int
    last: int
    flags: tuple[str, ...]
    sources: tuple[Source | str, ...]
    destination: str
    base: str
    arguments: frozenset[str]
    checksum: str = ""

    @property
    def remote(self) -> tuple[Source, ...]:
        return tuple(source for source in self.sources if isinstance(source, Source))


def sources_problem(
    dockerfile: str, build_args: Mapping[str, str], allow: Sequence[str] = ()
) -> str:
    """Why nobody fetches what this adds, or empty. Needs a Dockerfile without `lines_problem`."""
    try:
        for add in adds(dockerfile, build_args):
            for source in add.remote:
                if problem := source.problem(allow):
                    return f"Line {add.first + 1} of the Dockerfile: {problem}"
    except BadSource as problem:
        return str(problem)
    return ""


def adds(dockerfile: str, build_args: Mapping[str, str], target: str = "") -> Iterator[Add]:
    """Every ADD that could be more than a copy of the build's own files, with what it means.
    With a target those up to its stage. Raises BadSource with the number of a line in it."""
    escape = escape_sign(split_lines(dockerfile))
    walk = _Walk(build_args, escape)
    for instruction in read(dockerfile):
        verb, rest = _parted(instruction.text)
        if verb == "FROM":
            if target and target.lower() in walk.names:
                return
            walk.begin(rest)
        elif verb in {"ENV", "ARG"}:
            walk.follow(verb, rest)
        elif verb == "ONBUILD":
            _check_trigger(instruction, rest)
            walk.note_trigger(rest)
        elif verb == "ADD" and (add := _add(instruction, rest, walk, escape)) is not None:
            yield add


def arguments_of(found: Iterable[Add]) -> dict[str, frozenset[str]]:
    """By base image, what must not be an ENV of it."""
    made: dict[str, frozenset[str]] = {}
    for add in found:
        made[add.base] = made.get(add.base, frozenset()) | add.arguments
    return made


def trigger_problem(trigger: str) -> str:
    """Why an ADD may not wait in an image for builds to come, or empty."""
    verb, rest = _parted(trigger)
    if verb != "ADD":
        return ""
    words = _words(rest)
    if words is not None and all(map(_is_of_the_build, words[:-1])):
        return ""
    return "Only an ADD of the Dockerfile itself may fetch something from elsewhere."


def stage_variables(lines: Sequence[str]) -> frozenset[str] | None:
    """Names that a base image's triggers may set; None for any."""
    found: set[str] = set()
    for line in lines:
        verb, rest = _parted(line)
        if verb in {"ENV", "ARG"}:
            if re.search(r"[\"'`\\$]", rest):
                return None
            found |= {word.partition("=")[0] for word in rest.split()}
    return frozenset(found)


class _Walk:
    """Where in its stages the reading of a Dockerfile is."""

    def __init__(self, given: Mapping[str, str], escape: str) -> None:
        self._given = given
        self._escape = escape
        self._outer = Variables(given, escape)
        # The reading that chooses the images.
        self._bases = Arguments(given)
        self._number = -1
        self._stages: dict[str, tuple[str, Variables]] = {}
        self.variables = self._outer
        self.base = ""
        self.names: frozenset[str] = frozenset()

    def begin(self, rest: str) -> None:
        named = [word for word in rest.split() if not word.startswith("--")]
        text = self._bases.expanded(named[0]) if named else ""
        before = self._stages.get(text.lower())
        if before is not None:
            self.base, self.variables = before[0], before[1].child()
        else:
            self.base = text
            self.variables = Variables(self._given, self._escape, self._outer.arguments)
        self._number += 1
        name = named[2].lower() if len(named) == 3 and named[1].upper() == "AS" else ""
        self.names = frozenset({name, str(self._number)} - {""})
        if name:
            self._stages[name] = (self.base, self.variables)

    def follow(self, verb: str, rest: str) -> None:
        if verb == "ARG" and self._number < 0:
            self._bases.declare(rest.split())
        self.variables.follow(verb, rest)

    def note_trigger(self, rest: str) -> None:
        """It runs in stages that begin with this one."""
        if _parted(rest)[0] in {"ENV", "ARG"}:
            self.variables.lose()


def _check_trigger(instruction: Instruction, rest: str) -> None:
    if problem := trigger_problem(rest):
        raise BadSource(f"{_line(instruction)}: {problem}")


def _parted(text: str) -> tuple[str, str]:
    verb, *rest = text.split(None, 1)
    return verb.upper(), rest[0] if rest else ""


def _line(instruction: Instruction) -> str:
    return f"Line {instruction.first + 1} of the Dockerfile"


def _words(rest: str) -> list[str] | None:
    """Sources and destination, behind the flags; None where engines may see others."""
    flags, rest = _flags(rest)
    if not all(map(_PLAIN_FLAG.fullmatch, flags)):
        return None
    if not rest.startswith("["):
        return rest.split()
    try:
        words = json.loads(rest)
    except ValueError:
        return None
    is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return words if is_list else None


def _flags(rest: str) -> tuple[list[str], str]:
    flags = []
    while rest.startswith("--"):
        flag, *others = rest.split(None, 1)
        flags.append(flag)
        rest = others[0] if others else ""
    return flags, rest


def _is_of_the_build(word: str) -> bool:
    """Whatever an engine makes of its variables."""
    if _OF_THE_BUILD.match(word):
        return True
    return not _DOUBTFUL.search(word) and not _ELSEWHERE.match(word)


def _add(instruction: Instruction, rest: str, walk: _Walk, escape: str) -> Add | None:
    where = _line(instruction)
    words = _words(rest)
    if words is None:
        raise BadSource(
            f"{where}: it is not clear what it adds. Write its flags and sources plainly."
        )
    if len(words) < 2 or all(map(_is_of_the_build, words[:-1])):
        return None
    read_words = [(word, walk.variables.expanded(word)) for word in words[:-1]]
    sources = tuple(_source(where, word, value) for word, value in read_words)
    remote = [source for source in sources if isinstance(source, Source)]
    flags = _flags(rest)[0]
    if remote and len(remote) != len(sources):
        raise BadSource(
            f"{where} adds files of the build and from elsewhere. Write an ADD for each kind."
        )
    kept, checksum = _checked_flags(where, flags, walk) if remote else (tuple(flags), "")
    if checksum and len(remote) != 1:
        raise BadSource(f"{where}: --checksum is for one source.")
    return Add(
        first=instruction.first,
        last=instruction.last,
        flags=kept,
        sources=sources,
        destination=words[-1],
        base=walk.base,
        arguments=frozenset[str]().union(*(value.arguments for _, value in read_words)),
        checksum=checksum,
    )


def _checked_flags(where: str, flags: Sequence[str], walk: _Walk) -> tuple[tuple[str, ...], str]:
    """Those that a copy has too, and the checksum."""
    kept, checksum = [], ""
    for flag in flags:
        name, _, value = flag.removeprefix("--").partition("=")
        if name not in _FLAGS:
            raise BadSource(f"{where}: --{name} is not possible for what comes from elsewhere.")
        if name != "checksum":
            kept.append(flag)
            continue
        checksum = walk.variables.expanded(value).text or ""
        if not _CHECKSUM.fullmatch(checksum):
            raise BadSource(f"{where}: write --checksum=sha256: with 64 digits 0-9 a-f behind it.")
    return tuple(kept), checksum


def _source(where: str, word: str, value: Value) -> Source | str:
    if value.text is None:
        raise BadSource(
            f"{where}: it is not clear what {word[:_SHOWN]} is. Set its variables by ARG or ENV "
            "in the same stage, or write it plainly."
        )
    if not _ELSEWHERE.match(value.text):
        return value.text
    try:
        return parse_source(value.text)
    except BadSource as problem:
        raise BadSource(f"{where}: {problem}") from problem


def parse_source(text: str) -> Source:
    if not text.startswith(("http://", "https://")):
        raise BadSource(
            "builds fetch files over http and https only, no git repositories. Add an archive of "
            "it by its https address, or clone it in a RUN step."
        )
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(' \\"<>^`{|}')
    if not is_plain or len(text) > _LONGEST_URL:
        raise BadSource("the address is too long, or holds characters it may not.")
    try:
        parts = urlsplit(text)
        port = parts.port
        if port == 0:
            raise ValueError("0 is no port")
        host = host_name(parts.hostname or "")
    except BadHost as problem:
        raise BadSource(f"the address has no valid host. {problem}") from problem
    except ValueError as problem:
        raise BadSource(f"the address is not a URL: {problem}.") from problem
    if parts.path.rstrip("/").endswith(".git"):
        raise BadSource(
            "some engines take an address that ends with .git for a git repository, which builds "
            "do not fetch. Add an archive of it, or clone it in a RUN step."
        )
    user, _, netloc = parts.netloc.rpartition("@")
    url = parts._replace(netloc=netloc, fragment="").geturl()
    place = Place(parts.scheme, host, port or _PORTS[parts.scheme], parts.path or "/")
    return Source(url, place, user)
