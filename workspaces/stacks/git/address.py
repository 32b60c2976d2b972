"""Where a repository is, and whether the server may go there.

A user's text decides where the server connects to, so the name is resolved once, every address is
checked, and git is then held to exactly those addresses.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from agent.protocol.addresses import BadHost, host_name, is_public
from workspaces.stacks.git.allow import allows
from workspaces.stacks.git.types import GitError, GitRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Resolver = Callable[[str, int], Sequence[str]]

_SCHEMES: Final = {"https": 443, "http": 80, "ssh": 22}
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_PATH: Final = re.compile(r"/[A-Za-z0-9._~%+@,=/-]{1,1000}")
_SCP: Final = re.compile(r"(?P<user>[^@/:]+)@(?P<host>[^/:@]+):(?P<path>[^:].*)")
_MAX_URL: Final = 2000
_EXAMPLE: Final = "Write it as https://host/path or ssh://user@host/path."


@dataclass(frozen=True, kw_only=True)
class Address:
    """`url` is put together again from checked parts; no credential is in it."""

    scheme: str
    host: str
    port: int
    path: str
    user: str = ""

    @property
    def url(self) -> str:
        if self.scheme == "file":
            return f"file://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{user}{host}:{self.port}{self.path}"


def parse_repository(text: str) -> Address:
    """Takes https, http, ssh and file URLs and git@host:path; everything else is refused."""
    if len(text) > _MAX_URL or not text.isascii() or not text.isprintable():
        raise GitRefused(f"The repository's address holds characters it may not. {_EXAMPLE}")
    if "\\" in text or " " in text or text.startswith("-"):
        raise GitRefused(f"The repository's address holds characters it may not. {_EXAMPLE}")
    short = _SCP.fullmatch(text)
    if short and "://" not in text:
        path = short["path"] if short["path"].startswith("/") else f"/{short['path']}"
        return _address("ssh", short["host"], 22, path, short["user"])
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise GitRefused(f"The repository's address is not a URL. {_EXAMPLE}") from error
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise GitRefused("The repository's address may not have a part after ? or #.")
    if parts.scheme == "file":
        if parts.netloc:
            raise GitRefused("A file address has three slashes: file:///path/to/repository.")
        return Address(scheme="file", host="", port=0, path=_path(parts.path))
    if parts.scheme not in _SCHEMES:
        raise GitRefused(
            f"Repositories are read over https and ssh, not {parts.scheme[:20] or 'this'}. "
            f"{_EXAMPLE}"
        )
    user = _user(parts.scheme, parts.netloc)
    return _address(
        parts.scheme, parts.hostname or "", port or _SCHEMES[parts.scheme], parts.path, user
    )


def is_same_server(one: str, other: str) -> bool:
    """Whether a credential for the one repository may be shown to the other's server; http in
    place of https would show it to everybody on the way."""
    first, second = parse_repository(one), parse_repository(other)
    return (first.scheme, first.host, first.port) == (second.scheme, second.host, second.port)


def reachable_addresses(
    address: Address, allow: Sequence[str], resolve: Resolver | None = None
) -> tuple[str, ...]:
    """The IP addresses to connect to, each checked; for a file address there are none."""
    if address.scheme in {"file", "http"} and not allows(allow, address, ()):
        raise GitRefused(
            f"Repositories over {address.scheme} are read only where an administrator allows it. "
            f"Use https or ssh, or add {address.scheme}://{address.host or address.path} to "
            "TRAILER_GIT_ALLOW."
        )
    if address.scheme == "file":
        return ()
    found = tuple((resolve or _resolve)(address.host, address.port))
    if not found:
        raise GitError(f"The name {address.host} has no address. Check how it is written.")
    refused = [text for text in found if not is_public(text)]
    if refused and not allows(allow, address, refused):
        raise GitRefused(
            f"{address.host} is an address of a private network, where the server does not fetch "
            "repositories. An administrator can allow it with TRAILER_GIT_ALLOW."
        )
    if (
        address.port < 1024
        and address.port not in _SCHEMES.values()
        and not allows(allow, address, found)
    ):
        raise GitRefused(
            f"Port {address.port} is not one that repositories are served on. An administrator "
            "can allow it with TRAILER_GIT_ALLOW."
        )
    return found


def _address(scheme: str, host: str, port: int, path: str, user: str) -> Address:
    if scheme == "ssh" and not user:
        user = "git"
    if user and not _USER.fullmatch(user):
        raise GitRefused("The user name in the repository's address holds what it may not.")
    return Address(scheme=scheme, host=_host(host), port=port, path=_path(path), user=user)


def _user(scheme: str, netloc: str) -> str:
    user, at, _ = netloc.rpartition("@")
    if not at:
        return ""
    if scheme != "ssh" or ":" in user:
        raise GitRefused(
            "The repository's address may not hold a user name or password. Store them as the "
            "stack's credential, where they stay secret."
        )
    return user


def _host(text: str) -> str:
    try:
        return host_name(text)
    except BadHost as error:
        raise GitRefused(
            f"The repository's address has no valid host. {error} {_EXAMPLE}"
        ) from error


def _path(text: str) -> str:
    if not _PATH.fullmatch(text) or ".." in unquote(text).split("/"):
        raise GitRefused(f"The path in the repository's address holds what it may not. {_EXAMPLE}")
    return text


def _resolve(host: str, port: int) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise GitError(
            f"The name {host} can't be resolved. Check how it is written, and the server's DNS."
        ) from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
