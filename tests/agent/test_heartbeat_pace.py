"""When the agent beats, and that samples ride on its beats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from agent.loop.engine_watch import EngineWatch
from agent.loop.heartbeat import HeartbeatLoop
from agent.metrics.gpu_shelf import GpuShelf
from agent.metrics.subjects import Subjects
from agent.protocol.session import HeartbeatReply
from agent.protocol.state import HostSettings
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, workspace
from tests.agent.running import reaches
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from typing import Any

    from tests.agent.fake_server import FakeServer
    from tests.agent.running import Launch


class Fixed:
    """What the loop asks its neighbours."""

    def __init__(self, interval: float, next_beat: float) -> None:
        self.now = HostSettings(heartbeat_interval=interval)
        self.next_beat = next_beat

    def settings(self) -> HostSettings:
        return self.now

    def apply_settings(self, settings: HostSettings) -> bool:
        return False

    def epoch(self) -> int:
        return 1

    def heartbeat(self, beat: Any) -> HeartbeatReply:
        return HeartbeatReply(settings=self.now, next_beat=self.next_beat)


@pytest.mark.parametrize(
    ("wish", "pause"),
    [(0.0, 15.0), (11.25, 11.25), (20.0, 20.0), (0.01, 7.5), (1e9, 22.5), (-5.0, 7.5)],
)
def test_the_servers_wish_moves_a_beat_but_never_silences_the_agent(
    wish: float, pause: float
) -> None:
    near: Any = Fixed(15.0, wish)
    loop = HeartbeatLoop(
        server=near,
        session=near,
        target=near,
        runtime=FakeRuntime(),
        subjects=Subjects(),
        trouble=lambda: "",
        engine=EngineWatch(FakeRuntime(), on_turn=lambda _: None),
        on_settings=lambda: None,
        gpus=GpuShelf(),
        on_gpus=lambda: None,
    )
    loop.beat()
    assert loop._pause() == pause


def test_a_shorter_interval_in_the_document_ends_a_long_rest(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    settings = fake_server.settings
    fake_server.settings = msgspec.structs.replace(settings, heartbeat_interval=3600.0)
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    launch()
    reaches(fake_server, "running")
    beats = len(fake_server.book.heartbeats)
    fake_server.settings = settings
    fake_server.desire(images=(image(),), workspaces=(workspace(),))
    eventually(lambda: len(fake_server.book.heartbeats) > beats + 1, 15, "it rests on")
    last = fake_server.book.heartbeats[-1]
    assert last.metrics is not None
    assert last.metrics.host is not None
    assert last.agent_time
