"""What the agent as a whole reports about a replace that failed, and for how long."""

from typing import Any

from agent.protocol.report import WorkspaceStatus
from agent.protocol.spec import MountSpec
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, volume, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import eventually

DATA = MountSpec(target="/d", source="trailer-data", volume_id="v-data")


def test_a_failed_replace_stays_an_error_through_healing_and_a_new_agent(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    def wanted(revision: int, **fields: Any) -> None:
        web = workspace(mounts=(DATA,), revision=revision, **fields)
        fake_server.desire(images=(image(),), volumes=(volume(),), workspaces=(web,))

    wanted(1)
    agent = launch()
    reaches(fake_server, "running")
    (old,) = runtime.containers.values()
    runtime.failing["start_container"] = 1
    wanted(2, env={"A": "1"})
    reaches(fake_server, "error", revision=2)
    eventually(lambda: runtime.containers[old.id].state == "running")
    first = fake_server.status("w-web")
    assert first is not None
    # It dies, and is healed: that says nothing about the replace.
    fake_server.book.items.clear()
    runtime.stop_container(old.id, timeout=1)
    eventually(lambda: runtime.containers[old.id].state == "running", 20)
    reaches(fake_server, "error", revision=2)
    agent.stop()
    runtime.mutations.clear()
    launch()
    cycles = fake_server.book.requests.count("GET /state")
    eventually(lambda: fake_server.book.requests.count("GET /state") >= cycles + 2)
    reaches(fake_server, "error", revision=2)
    assert runtime.mutations == []
    told = [item for item in fake_server.all(WorkspaceStatus) if item.workspace_id == "w-web"]
    assert "running" not in {item.status for item in told}
    assert {item.message for item in told if item.status == "error"} == {first.message}
    wanted(3, env={"A": "1"})
    reaches(fake_server, "running", revision=3)
