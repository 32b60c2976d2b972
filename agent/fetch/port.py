"""What the agent asks of HTTP on a user's behalf, and what comes back; no I/O here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from agent.fetch.cancellation import Cancellation

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds for all of it (redirects included) and without a byte, bytes of the body, and how
    many redirects are followed."""

    total: float = 30.0
    idle: float = 10.0
    size: int = _MEGABYTE
    redirects: int = 5


@dataclass(frozen=True, kw_only=True)
class Request:
    """`authorization` goes to the URL's own scheme, host and port, and to no other that it
    redirects to; `allow` is a list of entries as `agent.protocol.addresses` describes them."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    authorization: str = field(default="", repr=False)
    allow: tuple[str, ...] = ()
    limits: Limits = Limits()
    # False only for a look that sends no secret and believes nothing that it reads.
    verify_tls: bool = True


class Answer(Protocol):
    """The last answer, redirects followed: one of another status than 2xx is no error. Iterating
    gives the body as it arrives, and raises FetchError when it is cut, too large or late."""

    @property
    def url(self) -> str:
        """Where it came from in the end."""
        ...

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By names in small letters; several of one name are joined by a comma."""
        ...

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Fetcher(Protocol):
    def open(self, request: Request, cancellation: Cancellation | None = None) -> Answer:
        """Raises AddressRefused before a byte goes to an address that is not allowed, and
        FetchError for whatever else goes wrong on the way to an answer."""
        ...


def body_of(answer: Answer) -> bytes:
    """All of it; the request's size limit bounds it."""
    return b"".join(answer)
