"""Answers of the agents' routes, read whole."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def decoded(answer: Any, kind: type[T]) -> T:
    assert answer.status_code == 200, body_of(answer)
    return msgspec.json.decode(body_of(answer), type=kind)
