"""A fetcher that answers from a table and notes what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from agent.errors import FetchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from agent.fetch.cancellation import Cancellation
    from agent.fetch.port import Request


@dataclass
class FakeAnswer:
    url: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_closed: bool = False

    def __iter__(self) -> Iterator[bytes]:
        if self.body:
            yield self.body
        self.close()

    def close(self) -> None:
        self.is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class FakeFetcher:
    """By URL without its query: an answer, or an error to raise. Whatever else is asked for
    cannot be reached."""

    def __init__(self, answers: Mapping[str, FakeAnswer | FetchError] | None = None) -> None:
        self.answers = dict(answers or {})
        self.requests: list[Request] = []

    def open(self, request: Request, cancellation: Cancellation | None = None) -> FakeAnswer:
        self.requests.append(request)
        if cancellation is not None:
            cancellation.check()
        found = self.answers.get(request.url.partition("?")[0])
        if found is None:
            raise FetchError(f"{request.url} cannot be reached.")
        if isinstance(found, FetchError):
            raise found
        found.url = found.url or request.url
        return found
