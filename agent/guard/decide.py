"""What the guard needs now, from what is wanted and what is known of it; pure."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

# Where a look costs a container, the rule is simply set anew after this many seconds: so long may
# `blocked` be untrue when somebody empties the packet filter.
AGAIN: Final = 900.0


class Act(Enum):
    REST = auto()
    PUT = auto()
    REMOVE = auto()


def decide(*, wanted: bool | None, made: bool, is_in_place: bool | None, age: float | None) -> Act:
    """`wanted` is None when the server does not know the setting: all stays as it is. `made`: this
    agent may have set the rule, now or in an earlier life; only then is it ours to remove. `age`:
    seconds since it was set, None if that was in another life of agent, engine or machine."""
    if wanted is None:
        return Act.REST
    if not wanted:
        return Act.REMOVE if made else Act.REST
    if is_in_place is not None:
        return Act.REST if is_in_place else Act.PUT
    return Act.PUT if age is None or age >= AGAIN else Act.REST
