"""What the agent needs of a server; errors are `ServerError`s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.protocol.report import Report, ReportReply
    from agent.protocol.session import (
        EnrolReply,
        EnrolRequest,
        Heartbeat,
        HeartbeatReply,
        SessionReply,
        SessionRequest,
    )


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A state document as bytes, with the tag to ask again."""

    body: bytes
    etag: str


class Token(Protocol):
    """What proves to the server which host's agent this is; it changes while the agent works."""

    def current(self) -> str: ...

    def replace(self, new: str) -> bool:
        """Store it and then use it; False when somebody else has changed it meanwhile."""
        ...

    def after_refusal(self, refused: str, is_known: Callable[[str], bool | None]) -> str:
        """Another one that the server knows, or empty."""
        ...


class Server(Protocol):
    def token(self) -> str:
        """The one in use at this moment."""
        ...

    def renew_token(self, *, epoch: int) -> bool:
        """A new one in place of the one in use, stored before it is used; False when it was not
        taken because another process was faster. Raises OSError when it can't be stored."""
        ...

    def enrol(self, request: EnrolRequest) -> EnrolReply: ...

    def open_session(self, request: SessionRequest) -> SessionReply: ...

    def fetch_state(self, *, epoch: int, etag: str) -> Fetched | None:
        """None: not modified."""
        ...

    def check(self) -> Fetched:
        """The document without a session: proves the token and changes nothing."""
        ...

    def report(self, report: Report) -> ReportReply: ...

    def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply: ...

    def append_log(self, build_id: str, *, epoch: int, offset: int, data: bytes) -> int:
        """Bytes the server now has; raises LogOffsetMoved when it has another number."""
        ...
