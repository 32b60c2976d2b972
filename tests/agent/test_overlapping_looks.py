"""A cycle that looked before an older one made a container knows nothing about that container."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.loop.wake import Reasons
from agent.observed import ObservedState
from agent.runtime.fake import FakeRuntime
from agent.runtime.port import Look
from agent.steps import WORKSPACE
from tests.agent.documents import IMAGE_REF, image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Running, reaches
from tests.ground.wait import eventually


class OvertakenRuntime(FakeRuntime):
    """Calls back once after a look was taken, before anything is made of it."""

    def __init__(self) -> None:
        super().__init__()
        self.after_look: Callable[[], None] | None = None

    def observe(self, look: Look) -> ObservedState:
        seen = super().observe(look)
        callback, self.after_look = self.after_look, None
        if callback:
            callback()
        return seen


@pytest.fixture
def runtime() -> OvertakenRuntime:
    made = OvertakenRuntime()
    made.add_image(IMAGE_REF)
    return made


@pytest.fixture
def agent(fake_server: FakeServer, runtime: OvertakenRuntime, tmp_path: Path) -> Iterator[Running]:
    running = Running(fake_server, runtime, tmp_path)
    yield running
    running.stop()


def test_a_container_made_during_a_look_stays_ours_and_goes_even_after_a_rename(
    fake_server: FakeServer, runtime: OvertakenRuntime, agent: Running
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    reaches(fake_server, "running")
    parts = agent.supervisor.parts
    eventually(parts.executor.is_idle)
    main = runtime.named("trailer-web")
    assert main is not None
    made: list[str] = []

    def an_older_cycle_begins_a_replace() -> None:
        made.append(runtime.add_container("trailer-web-next", labels=main.labels))
        parts.journal.own(made[0], kind=WORKSPACE, object_id="w-web")

    runtime.after_look = an_older_cycle_begins_a_replace
    # That look alone, and then the new name.
    agent.supervisor.cycles.cycle(Reasons(names=("test",), full=True, changed_ids=frozenset()))
    assert made[0] in parts.journal.view().owned_ids
    fake_server.desire(images=(image(),), workspaces=(workspace("shop", id="w-web", revision=2),))
    reaches(fake_server, "running", revision=2)
    eventually(lambda: runtime.named("trailer-web-next") is None, 10, "it stays for good")
