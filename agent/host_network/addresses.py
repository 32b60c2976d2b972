"""What this agent knows of its machine's addresses: read by cycles, told by heartbeats."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.diff.addresses import worth_telling
from agent.errors import EngineError
from agent.host_network.kernel import read_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.protocol.session import AddressRange

log = logging.getLogger(__name__)

# As many as a server keeps of any list in a heartbeat. The agent judges by all.
_TOLD: Final = 256
_UNREADABLE: Final = (
    "This agent does not see which addresses its machine uses: the kernel does not tell them "
)


@dataclass(frozen=True, kw_only=True)
class HostRanges:
    """`unseen` is a sentence that says why nobody can tell; there are no ranges then."""

    ranges: tuple[AddressRange, ...] = ()
    unseen: str = ""


def nowhere() -> str:
    return "This agent does not see which addresses its engine's machine uses."


class HostAddresses:
    """`find_problem` says whether interfaces and routes seen here are the engine's: empty if so.
    It is asked once for each connection to the engine."""

    def __init__(
        self,
        find_problem: Callable[[], str] = nowhere,
        *,
        read: Callable[[], tuple[AddressRange, ...]] = read_ranges,
    ) -> None:
        self._find_problem = find_problem
        self._read = read
        self._problem: str | None = None
        self._told: tuple[AddressRange, ...] | None = None
        self._logged = ""

    def engine_returned(self) -> None:
        """It may be another one, in another network."""
        self._problem = None

    def look(self) -> HostRanges:
        unseen = self._unseen()
        if not unseen:
            try:
                return HostRanges(ranges=self._read())
            except OSError as problem:
                unseen = f"{_UNREADABLE}({problem})."
        if unseen != self._logged:
            self._logged = unseen
            log.warning("%s Networks with a chosen subnet are refused here.", unseen)
        return HostRanges(unseen=unseen)

    def _unseen(self) -> str:
        # The engine's thread may forget it at any moment.
        problem = self._problem
        if problem is None:
            try:
                problem = self._problem = self._find_problem()
            except EngineError as trouble:
                return f"{nowhere()} {trouble}"
        return problem

    def saw(self, taken: tuple[AddressRange, ...]) -> None:
        """What the last cycle found taken, by the machine and by the engine's networks."""
        self._told = worth_telling(taken, most=_TOLD)

    def told(self) -> tuple[AddressRange, ...] | None:
        """For the heartbeat; None before the first cycle."""
        return self._told
