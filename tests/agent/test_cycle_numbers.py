"""Numbers of cycles: given to several threads, none twice, and none again after a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

from agent.loop.cycle import CycleLoop


class Journal:
    """Keeps what was saved last, as the one on disk does."""

    def __init__(self) -> None:
        self.saved = 41

    def cycle_number(self) -> int:
        return self.saved

    def save_cycle_number(self, number: int) -> None:
        self.saved = number


def test_threads_that_take_numbers_at_once_get_each_one_once() -> None:
    journal = Journal()
    cycles = CycleLoop(cast("Any", SimpleNamespace(journal=journal)))
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: cycles.take_number(), range(800)))
    assert sorted(taken) == list(range(42, 842))
    assert journal.saved == 841
