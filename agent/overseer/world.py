"""What the overseer sees on its engine and what it remembers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

AGENT_NAME: Final = "trailer-agent"
NEXT_NAME: Final = "trailer-agent-next"
PREVIOUS_NAME: Final = "trailer-agent-previous"
OVERSEER_NAME: Final = "trailer-agent-overseer"


@dataclass(frozen=True, kw_only=True)
class AgentContainer:
    """`made_by` is the id of the overseer that made it; empty when a person did."""

    id: str
    name: str
    running: bool
    image: str = ""
    made_by: str = ""
    ever_started: bool = True


@dataclass(frozen=True, kw_only=True)
class World:
    """The containers in the overseer's parts; None where there is none."""

    current: AgentContainer | None = None
    previous: AgentContainer | None = None
    next: AgentContainer | None = None


class Phase(Enum):
    RECOVER = auto()
    VALIDATE = auto()
    SWAP = auto()


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Of this process alone: after a crash everything is read from the engine again."""

    own_id: str
    phase: Phase = Phase.RECOVER
    failures: int = 0
    # The newest try failed: the next one comes after a pause.
    must_pause: bool = False
    pulled: bool = False
    is_next_healthy: bool = False
    is_current_healthy: bool = False
    # It was us who stopped the agent, not a person.
    stopped_by_us: bool = False
    # A swap went wrong: the agent that was before comes back.
    roll_back: bool = False
    # A swap of an earlier process was carried to its end.
    committed: bool = False
    # The server's order was for the very image that runs.
    fulfilled: bool = False


class Act(Enum):
    """One engine call each, so that a crash falls between two of them."""

    REMOVE_NEXT = auto()
    PULL = auto()
    CREATE_NEXT = auto()
    START_NEXT = auto()
    WATCH_NEXT = auto()
    REMOVE_VALIDATED = auto()
    STOP_CURRENT = auto()
    RENAME_TO_PREVIOUS = auto()
    CREATE_CURRENT = auto()
    START_CURRENT = auto()
    WATCH_CURRENT = auto()
    REMOVE_PREVIOUS = auto()
    REMOVE_CURRENT = auto()
    RENAME_BACK = auto()
    PAUSE = auto()
    FINISH = auto()
    GIVE_UP = auto()
