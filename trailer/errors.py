"""The failures a service may raise; the API and the pages turn them into answers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ApplicationError(Exception):
    """A sentence for the user: what happened, to what, and what to do."""

    code = "error"
    status = 400
    # Answered beside code and message.
    extra: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.fields = {name: list(sentences) for name, sentences in (fields or {}).items()}


class Invalid(ApplicationError):
    code = "invalid"
    status = 400

    @classmethod
    def field(cls, name: str, sentence: str) -> Invalid:
        return cls(sentence, fields={name: [sentence]})


class NotAllowed(ApplicationError):
    code = "not_allowed"
    status = 403


class NotFound(ApplicationError):
    code = "not_found"
    status = 404


class Conflict(ApplicationError):
    code = "conflict"
    status = 409


class WouldLoseFiles(Conflict):
    """The change was refused because files would be gone; `extra` says which."""

    code = "would_lose_files"

    def __init__(self, message: str, *, extra: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.extra = dict(extra)


class Throttled(ApplicationError):
    """Too many attempts; `retry_after` seconds must pass."""

    code = "throttled"
    status = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(ApplicationError):
    code = "unavailable"
    status = 503
