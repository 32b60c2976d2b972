"""What the agent changed itself is looked at anew, however late the engine tells of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.observed import ObservedContainer, ObservedState
from agent.runtime.fake import FakeRuntime
from agent.runtime.port import Look
from tests.agent.documents import IMAGE_REF, image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Running, reaches
from tests.ground.wait import eventually

MIB = 1024 * 1024


class LateRuntime(FakeRuntime):
    """Remembers containers between looks, as the real one does, and tells no event."""

    def __init__(self) -> None:
        super().__init__()
        self._remembered: dict[str, ObservedContainer] = {}

    def observe(self, look: Look) -> ObservedState:
        seen = super().observe(look)
        known = {} if look.full else self._remembered
        self._remembered = {
            now.id: now if now.id in look.changed_ids else known.get(now.id, now)
            for now in seen.containers
        }
        return ObservedState(
            containers=tuple(self._remembered.values()),
            networks=seen.networks,
            volumes=seen.volumes,
            images=seen.images,
        )

    def _emit(self, kind: str, action: str, container: ObservedContainer) -> None:
        """The event is still on its way."""


@pytest.fixture
def runtime() -> FakeRuntime:
    late = LateRuntime()
    late.add_image(IMAGE_REF)
    return late


@pytest.fixture
def agent(fake_server: FakeServer, runtime: FakeRuntime, tmp_path: Path) -> Iterator[Running]:
    running = Running(fake_server, runtime, tmp_path)
    yield running
    running.stop()


def test_a_healed_limit_is_told_once_although_the_engine_is_late_to_tell(
    fake_server: FakeServer, runtime: FakeRuntime, agent: Running
) -> None:
    fake_server.desire(images=(image(),), workspaces=(workspace(memory_bytes=64 * MIB),))
    reaches(fake_server, "running")
    eventually(agent.supervisor.parts.executor.is_idle)
    container = runtime.named("trailer-web")
    assert container is not None
    runtime.update_container(container.id, nano_cpus=0, memory_bytes=32 * MIB)
    runtime.mutations.clear()
    cycles = len(fake_server.cycles())
    agent.supervisor.parts.wake.changed(container.id, "event")
    eventually(lambda: len(fake_server.cycles()) > cycles, message="nothing was healed")
    # The look that follows each change has been taken when the next one begins.
    wake = agent.supervisor.parts.wake
    for _ in range(3):
        wake.request("test")
        eventually(wake.is_quiet)
        eventually(agent.supervisor.parts.executor.is_idle)
    assert runtime.mutations == ["update_container"]
    assert [e.event for e in fake_server.events("w-web")] == ["create", "heal"]
