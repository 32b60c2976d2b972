"""A build's steps are containers that come and go: they must not keep the agent looking."""

from agent.runtime.fake import FakeRuntime
from agent.runtime.port import EngineEvent
from tests.agent.documents import image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, Running, reaches
from tests.ground.wait import always, eventually


def network_event(agent: Running, container_id: str) -> None:
    agent.supervisor.engine_turns.event(
        EngineEvent(kind="network", action="disconnect", id="n1", container_id=container_id)
    )


def test_a_strangers_network_event_waits_while_a_build_runs_and_ours_does_not(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.endless_builds = True
    built = image("app", kind="build", ref="trailer/i-app:latest", dockerfile="FROM x", done=False)
    fake_server.desire(images=(image(), built), workspaces=(workspace(),))
    agent = launch()
    reaches(fake_server, "running")
    parts = agent.supervisor.parts
    eventually(lambda: parts.works.running_builds() and parts.wake.is_quiet(), 10)
    network_event(agent, "a-step-of-the-build")
    always(parts.wake.is_quiet, 0.3, "a stranger is looked at at once")
    (ours,) = parts.journal.view().containers.values()
    calls = runtime.calls
    network_event(agent, ours)
    eventually(lambda: runtime.calls > calls, 1, "our own network is not looked at")
