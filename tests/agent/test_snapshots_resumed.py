"""Snapshots that an agent left in the middle: the next one looks before it does anything."""

from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.agent.test_snapshots import REF, begin, ends, snap
from tests.ground.wait import always, eventually


def test_the_next_agent_adopts_what_the_engine_finished_alone(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    agent = begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    agent.stop()
    fake_server.book.items.clear()
    launch()
    reaches(fake_server, "snapshotting")
    always(lambda: "unpause_container" not in runtime.mutations, 0.5, "woken in the middle")
    runtime.let_commit.set()
    result = ends(fake_server, "finished")
    assert result.engine_id == runtime.inspect_image(REF).id
    reaches(fake_server, "running")
    assert runtime.mutations.count("commit_container") == 1


def test_the_next_agent_wakes_what_a_dead_engine_left_paused(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    agent = begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    agent.stop()
    runtime.forget_pauses()
    runtime.commits = "at once"
    launch()
    ends(fake_server, "finished")
    reaches(fake_server, "running")
    assert "unpause_container" in runtime.mutations
    runtime.let_commit.set()


def test_the_next_agent_finishes_what_was_only_committed(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    """With secrets the image that is kept is made of the committed one, in a second step."""
    secret = workspace(secret_env={"TOKEN": "x"})
    fake_server.desire(images=(image(),), workspaces=(secret,))
    agent = launch()
    reaches(fake_server, "running")
    runtime.commits = "held"
    fake_server.desire(images=(image(), snap()), workspaces=(secret,))
    reaches(fake_server, "snapshotting")
    agent.stop()
    runtime.let_commit.set()
    eventually(lambda: any("trailer/i-snap:committed" in i.tags for i in runtime.images.values()))
    launch()
    result = ends(fake_server, "finished")
    tags = sorted(tag for i in runtime.images.values() for tag in i.tags if "i-snap" in tag)
    assert tags == [REF]
    assert runtime.inspect_image(REF).id == result.engine_id
    assert runtime.mutations.count("commit_container") == 1


def test_a_cancel_while_no_agent_ran_wakes_the_container_and_leaves_no_image(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    agent = begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    agent.stop()
    fake_server.desire(images=(image(), snap(cancel=True)), workspaces=(workspace(),))
    second = launch()
    ends(fake_server, "cancelled")
    reaches(fake_server, "running")
    # The engine ends what it had begun after everybody has given it up.
    runtime.let_commit.set()
    eventually(lambda: runtime.committed == [REF])
    second.supervisor.parts.wake.request("test", full=True)
    eventually(lambda: "remove_image" in runtime.mutations, 10)
    eventually(lambda: not any(REF in i.tags for i in runtime.images.values()), 10)
