"""Image references: one strict grammar, one normal form, and the exact registry of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from trailer.errors import Invalid

DOCKER_HUB: Final = "docker.io"
_HUB_ALIASES: Final = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
_LIMIT: Final = 255

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_SERVER = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_PATH_PART}(?:/{_PATH_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_ENGINE_ID = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Reference:
    """`tag` is empty when a digest is given: a digest alone says which image it is."""

    server: str
    path: str
    tag: str
    digest: str

    @property
    def name(self) -> str:
        """Without tag, in the short form that engines show: `busybox`, `registry:5000/app`."""
        if self.server != DOCKER_HUB:
            return f"{self.server}/{self.path}"
        return self.path.removeprefix("library/") if self.path.count("/") == 1 else self.path

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


def parse_reference(text: str, *, field: str = "reference") -> Reference:
    """Raise Invalid unless an engine would take this text as the name of an image."""
    if not text or len(text) > _LIMIT:
        raise Invalid.field(field, f"An image reference has 1 to {_LIMIT} characters.")
    name, _, digest = text.partition("@")
    if "@" in text and not _DIGEST.fullmatch(digest):
        raise _wrong(field, text, "its digest must look like sha256: and 64 hexadecimal digits")
    name, tag = _split_tag(name)
    if tag is not None and not _TAG.fullmatch(tag):
        raise _wrong(field, text, "its tag holds a character that tags can't have, or is empty")
    server, path = _split_server(name)
    if not is_server(server):
        raise _wrong(field, text, f"“{server}” is not the address of a registry")
    if not _PATH.fullmatch(path):
        raise _wrong(
            field, text, "names hold small letters and digits, joined by / . - _, like team/app:1"
        )
    if _ENGINE_ID.fullmatch(path):
        raise _wrong(field, text, "64 hexadecimal digits are an id, not a name")
    if server == DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    return Reference(
        server=server, path=path, tag="" if digest else (tag or "latest"), digest=digest
    )


def normalise_reference(text: str) -> str:
    """What the engine calls it: `busybox` and `docker.io/library/busybox:latest` are the same."""
    return str(parse_reference(text))


def registry_server(text: str) -> str:
    """The one server that credentials for this reference may go to."""
    return parse_reference(text).server


def is_server(text: str) -> bool:
    if not _SERVER.fullmatch(text) or len(text) > _LIMIT:
        return False
    port = text.rpartition(":")[2] if re.search(r":[0-9]+$", text) else ""
    return not port or 1 <= int(port) <= 65535


def normalise_server(text: str, *, field: str = "server") -> str:
    """`host` or `host:port` in small letters; the names of Docker Hub become one."""
    server = text.strip().lower()
    if not is_server(server):
        raise Invalid.field(
            field,
            f"“{text}” is not the address of a registry; write host or host:port, "
            "without https:// and without a path.",
        )
    return DOCKER_HUB if server in _HUB_ALIASES else server


def _split_tag(name: str) -> tuple[str, str | None]:
    """A colon after the last slash begins the tag; one before it belongs to the server's port."""
    head, slash, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    return f"{head}{slash}{last}", tag if colon else None


def _split_server(name: str) -> tuple[str, str]:
    """Docker's rule: the first part is a server only if it looks like one."""
    first, slash, rest = name.partition("/")
    looks_like_server = (
        "." in first or ":" in first or first == "localhost" or first != first.lower()
    )
    if not slash or not looks_like_server:
        return DOCKER_HUB, name
    server = first.lower()
    return (DOCKER_HUB if server in _HUB_ALIASES else server), rest


def _wrong(field: str, text: str, why: str) -> Invalid:
    return Invalid.field(field, f"“{text}” is not an image reference: {why}.")
