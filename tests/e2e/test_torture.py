"""Engine, agent, server and database killed and frozen at random while workspaces are edited.

TRAILER_TEST_TORTURE_SEED repeats a storm: the faults and the edits, not how they interleave.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.torture_scene import TortureScene
from tests.ground.outcome import has_failed
from tests.ground.size import TORTURE_S, TORTURE_STORM_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.ground.engine import PrivateEngine


@pytest.fixture
def scene(
    engine_factory: Callable[..., PrivateEngine], request: pytest.FixtureRequest
) -> Iterator[TortureScene]:
    """An odd seed has an engine whose containers outlive it."""
    seed = int(os.environ.get("TRAILER_TEST_TORTURE_SEED") or secrets.randbelow(1_000_000))
    print(f"TRAILER_TEST_TORTURE_SEED={seed}")
    options = ["--live-restore"] if seed % 2 else []
    made = TortureScene(engine_factory(*options), seed)
    try:
        yield made.open()
    finally:
        made.close(failed=has_failed(request.node))


@pytest.mark.timeout(2400)
def test_whatever_dies_or_freezes_nothing_is_lost_stuck_or_untold(scene: TortureScene) -> None:
    ends = time.monotonic() + TORTURE_S
    while True:
        scene.storm(TORTURE_STORM_S)
        scene.settled()
        print(scene.said())
        if time.monotonic() >= ends:
            break
    faults = [part.kills + part.freezes for part in scene.parts.values()]
    assert all(faults), scene.said()
    assert sum(scene.watch.checked.values()), scene.said()
