"""Sends hostile requests as each role; no answer may be 5xx or hold another tenant's texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.security.requests_made import Attempt, Maker

# An agent that is not there, a queue that is full: told as 503 with a sentence, by contract.
_TOLD = 503


class Caller(Protocol):
    def send(self, attempt: Attempt) -> tuple[int, str]: ...


@dataclass
class Findings:
    sent: int = 0
    codes: Counter[tuple[str, int]] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)

    def by_role(self) -> dict[str, dict[int, int]]:
        roles: dict[str, dict[int, int]] = {}
        for (role, code), count in sorted(self.codes.items()):
            roles.setdefault(role, {})[code] = count
        return roles


def hunt(
    maker: Maker,
    callers: Mapping[str, Caller],
    *,
    count: int,
    marks: Mapping[str, str],
    findings: Findings | None = None,
) -> Findings:
    """`marks`: role -> a text of objects that this role may never read."""
    found = findings or Findings()
    roles = list(callers)
    for number in range(count):
        role = roles[number % len(roles)]
        attempt = maker.attempt()
        code, text = callers[role].send(attempt)
        found.sent += 1
        found.codes[role, code] += 1
        line = f"{role} {attempt.method} {attempt.address} {attempt.body!r}"
        if code >= 500 and code != _TOLD:
            found.broken.append(f"{code} {line} -> {text[:300]}")
        if role in marks and marks[role] in text:
            found.leaked.append(line)
    return found
