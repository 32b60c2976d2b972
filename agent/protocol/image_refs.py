"""Image references: the one parser, for server and agent, because it decides where passwords go.

The grammar and the splitting are those of github.com/distribution/reference (ParseNormalizedNamed,
ParseAnyReference), which engines use themselves. Its answers to a few hundred spellings are in
`tests/agent/image_references.json`.

- The part before the first slash is a server if it has a dot, a colon or a capital letter, or is
  `localhost`; otherwise the image is Docker Hub's, and so is everything without a slash.
- `index.docker.io` is another name of `docker.io`. Nothing else is, not `registry-1.docker.io`:
  engines keep that apart as a registry of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

DOCKER_HUB: Final = "docker.io"
# The machine that answers the registry API for Docker Hub's images.
HUB_API: Final = "registry-1.docker.io"
_HUB_NAMES: Final = frozenset({DOCKER_HUB, "index.docker.io"})
_LONGEST_PATH: Final = 255
# Of a text from a person; no column and no label of ours is made for more.
_LONGEST_TEXT: Final = 255
_SHOWN: Final = 120

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_SERVER: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:]+\])(?::([0-9]+))?")
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH: Final = re.compile(rf"{_PATH_PART}(?:/{_PATH_PART})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_HEX_ID: Final = re.compile(r"[0-9a-f]{64}")
# `sha256:` and a few digits is the beginning of an id to an engine.
_ID_WORDS: Final = frozenset({"sha256", "sha384", "sha512"})


class InvalidReferenceError(ValueError):
    """The text names no image; the message is a sentence for whoever wrote it."""


@dataclass(frozen=True)
class Reference:
    """`server` as it is spelled, but for Docker Hub's; tag and digest may both be empty."""

    server: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def full_name(self) -> str:
        """With its server, always: `docker.io/library/busybox`."""
        return f"{self.server}/{self.path}"

    @property
    def familiar_name(self) -> str:
        """What engines list: `busybox`. For a few images of the Hub that is the name of another
        image: `docker.io/localhost/app` is listed as `localhost/app`."""
        if self.server != DOCKER_HUB:
            return self.full_name
        return self.path.removeprefix("library/") if self.path.count("/") == 1 else self.path

    @property
    def name(self) -> str:
        """The familiar name where that means this image, else the full one."""
        return self.full_name if self.is_ambiguous else self.familiar_name

    @property
    def is_ambiguous(self) -> bool:
        """True if engines list it under a name by which they would take another image."""
        short = self.familiar_name
        is_id = short in _ID_WORDS or bool(_HEX_ID.fullmatch(short))
        return is_id or _split_server(short) != (self.server, self.path)

    def __str__(self) -> str:
        """The normal form: a digest alone says which image it is, and `latest` is spelled out."""
        if self.digest:
            return f"{self.name}@{self.digest}"
        return f"{self.name}:{self.tag or 'latest'}"


def parse(text: str) -> Reference:
    """Raises InvalidReferenceError unless the grammar takes it as the name of an image."""
    if engine_id(text):
        raise _wrong(text, "it is the id of an image, not a name")
    server, rest = _split_server(text)
    rest, at, digest = rest.partition("@")
    head, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    path = f"{head}{slash}{last}"
    if at and not _DIGEST.fullmatch(digest):
        raise _wrong(text, "its digest must look like sha256: and 64 hexadecimal digits")
    if colon and not _TAG.fullmatch(tag):
        raise _wrong(text, "its tag holds a character that tags can't have, is empty or too long")
    if not _SERVER.fullmatch(server):
        raise _wrong(text, f"“{_short(server)}” is not the address of a registry")
    if not _PATH.fullmatch(path):
        raise _wrong(
            text, "names hold small letters and digits, joined by / . - _, like team/app:1"
        )
    if len(path) > _LONGEST_PATH:
        raise _wrong(text, f"a name has at most {_LONGEST_PATH} characters")
    return Reference(server=server, path=path, tag=tag, digest=digest)


def find(text: str) -> Reference | None:
    """None where the text names no image."""
    try:
        return parse(text)
    except InvalidReferenceError:
        return None


def engine_id(text: str) -> str:
    """The id or bare digest that engines read this text as; empty for a name."""
    if _HEX_ID.fullmatch(text):
        return f"sha256:{text}"
    return text if _DIGEST.fullmatch(text) else ""


def problem(text: str) -> str:
    """Why Trailer takes no image by this name from people, or empty. Stricter than the grammar:
    the server must be one that can be reached, and the image one that its host can tell apart."""
    if not text or len(text) > _LONGEST_TEXT:
        return f"An image reference has 1 to {_LONGEST_TEXT} characters."
    try:
        ref = parse(text)
    except InvalidReferenceError as wrong:
        return str(wrong)
    if not is_server(ref.server):
        return str(_wrong(text, f"“{ref.server}” is not the address of a registry"))
    if ref.is_ambiguous:
        return (
            f"An engine knows {text} as {ref.familiar_name}, which is the name of another image "
            "or looks like an id. Choose another name."
        )
    return ""


# --- what is written somewhere already, and so is taken as it is -----------------------------


def normal(text: str) -> str:
    """One spelling per image and id; a text that is neither stays as it is."""
    ref = find(text)
    return str(ref) if ref else engine_id(text) or text


def name_of(text: str) -> str:
    """The normal form's part before tag and digest, or empty."""
    ref = find(text)
    return ref.name if ref else ""


def server_of(text: str) -> str:
    """The one server that this image is fetched from, or empty."""
    ref = find(text)
    return ref.server if ref else ""


def names_registry(text: str) -> bool:
    """True for a name that says itself which registry it is from. Engines take any other one for
    Docker Hub's, where it may be anybody's."""
    ref = find(text)
    first, slash, _ = text.partition("/")
    return ref is not None and (ref.server != DOCKER_HUB or (bool(slash) and first in _HUB_NAMES))


def is_same_image(one: str, other: str) -> bool:
    """Two spellings of one reference; nothing is the same as no reference at all."""
    return bool(one) and normal(one) == normal(other)


def is_pinned(text: str) -> bool:
    """True if it names a digest, which never moves."""
    ref = find(text)
    return ref is not None and bool(ref.digest)


def pull_parts(text: str) -> tuple[str, str]:
    """(name, tag or digest) as the engine's pull, push, tag and commit want them."""
    ref = find(text)
    return (ref.name, ref.digest or ref.tag or "latest") if ref else (text, "latest")


# --- servers -------------------------------------------------------------------------------


def is_server(text: str) -> bool:
    """`host` or `host:port`, no scheme and no path."""
    found = _SERVER.fullmatch(text)
    if found is None or len(text) > _LONGEST_TEXT:
        return False
    return found[1] is None or (len(found[1]) <= 5 and 1 <= int(found[1]) <= 65535)


def server_key(server: str) -> str:
    """What is equal for two spellings of one server, and for them alone: the case of a host's name
    means nothing. Only the Hub's exact names are the Hub: an engine that pulls from `Docker.io`
    connects to that host as to any other."""
    if server in _HUB_NAMES:
        return DOCKER_HUB
    folded = server.lower()
    return server if folded in _HUB_NAMES else folded


def is_same_server(one: str, other: str) -> bool:
    return bool(one) and server_key(one) == server_key(other)


def api_server(server: str) -> str:
    """Where the registry's API is: Docker Hub's is at another name than its images'."""
    return HUB_API if server == DOCKER_HUB else server


def credential_fits(ref: str, server: str) -> bool:
    """True only if `server`, which a credential is for, is the one that `ref` is fetched from."""
    return is_same_server(server_of(ref), server)


def _split_server(text: str) -> tuple[str, str]:
    """Before anything is checked: the rest may hold tag and digest."""
    first, slash, rest = text.partition("/")
    is_named = "." in first or ":" in first or first == "localhost" or first != first.lower()
    if not slash or not is_named:
        first, rest = DOCKER_HUB, text
    if first in _HUB_NAMES:
        return DOCKER_HUB, rest if "/" in rest else f"library/{rest}"
    return first, rest


def _wrong(text: str, why: str) -> InvalidReferenceError:
    return InvalidReferenceError(f"“{_short(text)}” is not an image reference: {why}.")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
