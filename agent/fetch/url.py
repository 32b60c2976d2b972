"""The addresses that are fetched: which texts are URLs, and where a redirect leads; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from agent.errors import FetchError
from agent.protocol.addresses import BadHost, Place, host_name

_PORTS: Final = {"https": 443, "http": 80}
_LONGEST: Final = 8000
_SHOWN: Final = 100


@dataclass(frozen=True)
class Url:
    """`target` is path and query, as they are sent."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """What a credential is for."""
        return (self.scheme, self.host, self.port)

    @property
    def netloc(self) -> str:
        """Host and, unless it is the scheme's own, port: the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def place(self) -> Place:
        return Place(self.scheme, self.host, self.port, self.target)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.target}"

    def redirected(self, location: str) -> Url:
        """Raises FetchError for what `parse_url` refuses."""
        _check_characters(location)
        return parse_url(urljoin(str(self), location))


def parse_url(text: str) -> Url:
    """Raises FetchError with a sentence for everything that programs do not all read alike."""
    _check_characters(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as problem:
        raise FetchError(f"{text[:_SHOWN]} is not a URL: {problem}.") from problem
    if parts.scheme not in _PORTS:
        raise FetchError(f"{text[:_SHOWN]} is no http or https address.")
    if "@" in parts.netloc:
        # Not quoted: it may be a password.
        raise FetchError("The address may not hold a user name or password.")
    if port == 0:
        raise FetchError(f"{text[:_SHOWN]} has no valid port.")
    try:
        host = host_name(parts.hostname or "")
    except BadHost as problem:
        raise FetchError(f"{text[:_SHOWN]} has no valid host. {problem}") from problem
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    return Url(parts.scheme, host, port or _PORTS[parts.scheme], target)


def _check_characters(text: str) -> None:
    """The parser would drop some of these without a word, and others read them as separators."""
    is_plain = text.isascii() and text.isprintable() and not set(text) & set(' \\"<>^`{|}')
    if not text or len(text) > _LONGEST or not is_plain:
        raise FetchError("The address is empty, too long, or holds characters it may not.")
