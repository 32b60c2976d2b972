"""Snapshots that an agent left in the middle: the next one looks before it does anything."""

import msgspec
import pytest

from agent.protocol.state import DesiredBuild
from agent.runtime.fake import FakeRuntime
from tests.agent.documents import image, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.agent.test_snapshots import COMMITTED, REF, begin, ends, snap
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


def test_a_commit_that_is_under_way_stays_so_while_the_engine_answers(
    fake_server: FakeServer,
    runtime: FakeRuntime,
    launch: Launch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It remembers its last 256 events, and the health checks of others push a pause out."""
    runtime.commits = "held"
    agent = begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    agent.stop()
    fake_server.book.items.clear()
    answers = iter((True,))
    monkeypatch.setattr(runtime, "recalls_pause", lambda _: next(answers, None))
    launch()
    reaches(fake_server, "snapshotting")
    always(lambda: "unpause_container" not in runtime.mutations, 1.0, "woken in the middle")
    runtime.let_commit.set()
    ends(fake_server, "finished")
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
    eventually(lambda: any(COMMITTED in i.tags for i in runtime.images.values()))
    launch()
    result = ends(fake_server, "finished")
    tags = sorted(tag for i in runtime.images.values() for tag in i.tags if "i-snap" in tag)
    assert tags == [REF]
    assert runtime.inspect_image(REF).id == result.engine_id
    assert runtime.mutations.count("commit_container") == 1


@pytest.mark.parametrize("again", ["at once", "daemon dies"], ids=["finished", "failed"])
def test_an_image_that_a_dying_engine_left_without_a_name_does_not_stay(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch, again: str
) -> None:
    """The workspace's secrets are beside it."""
    runtime.commits = "daemon dies over the name"
    begin(fake_server, launch)
    eventually(lambda: "sha256:unnamed" in runtime.images)
    runtime.commits = again
    ends(fake_server, "finished" if again == "at once" else "failed")
    eventually(lambda: "sha256:unnamed" not in runtime.images, 10, "it stays")


def test_a_cancel_while_no_agent_ran_wakes_the_container_and_leaves_no_image(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    agent = begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    eventually(lambda: b"Committing" in fake_server.book.logs.get("b-snap", b""))
    agent.stop()
    fake_server.desire(images=(image(), snap(cancel=True)), workspaces=(workspace(),))
    second = launch()
    ends(fake_server, "cancelled")
    reaches(fake_server, "running")
    eventually(
        lambda: fake_server.book.logs["b-snap"].endswith(b"\nCancelled: cancel requested.\n"),
        5,
        "the log does not say how it ended",
    )
    # The engine ends what it had begun after everybody has given it up.
    runtime.let_commit.set()
    eventually(lambda: runtime.committed == [COMMITTED])
    second.supervisor.parts.wake.request("test", full=True)
    eventually(lambda: "remove_image" in runtime.mutations, 10)
    eventually(lambda: not any(REF in i.tags for i in runtime.images.values()), 10)


def test_a_late_commit_with_secrets_of_a_cancelled_snapshot_leaves_no_image(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    secret = workspace(secret_env={"TOKEN": "x"})
    fake_server.desire(images=(image(),), workspaces=(secret,))
    agent = launch()
    reaches(fake_server, "running")
    runtime.commits = "held"
    fake_server.desire(images=(image(), snap()), workspaces=(secret,))
    reaches(fake_server, "snapshotting")
    agent.stop()
    fake_server.desire(images=(image(), snap(cancel=True)), workspaces=(secret,))
    second = launch()
    ends(fake_server, "cancelled")
    reaches(fake_server, "running")
    runtime.let_commit.set()
    eventually(lambda: runtime.committed == [COMMITTED])
    second.supervisor.parts.wake.request("test", full=True)
    eventually(
        lambda: not any("i-snap" in tag for i in runtime.images.values() for tag in i.tags),
        10,
        "the image with the secrets stays",
    )


@pytest.mark.parametrize("secret_env", [{}, {"TOKEN": "x"}], ids=["plain", "with secrets"])
def test_a_late_commit_of_a_cancelled_snapshot_takes_nothing_from_a_newer_one(
    fake_server: FakeServer,
    runtime: FakeRuntime,
    launch: Launch,
    secret_env: dict[str, str],
) -> None:
    source = workspace(secret_env=secret_env)
    fake_server.desire(images=(image(),), workspaces=(source,))
    agent = launch()
    reaches(fake_server, "running")
    runtime.commits = "held"
    fake_server.desire(images=(image(), snap()), workspaces=(source,))
    reaches(fake_server, "snapshotting")
    agent.stop()
    fake_server.desire(images=(image(), snap(cancel=True)), workspaces=(source,))
    second = launch()
    ends(fake_server, "cancelled")
    runtime.commits = "at once"
    retried = msgspec.structs.replace(snap(), build=DesiredBuild(id="b-again", number=2))
    fake_server.desire(images=(image(), retried), workspaces=(source,))
    eventually(lambda: (b := fake_server.build("b-again")) and b.status == "finished", 10)
    made = runtime.inspect_image(REF).id
    assert fake_server.build("b-again").engine_id == made  # type: ignore[union-attr]
    # Only now is the engine done with what was cancelled.
    runtime.let_commit.set()
    eventually(lambda: len(runtime.committed) == 2)
    assert runtime.inspect_image(REF).id == made
    second.supervisor.parts.wake.request("test", full=True)
    eventually(
        lambda: [t for i in runtime.images.values() for t in i.tags if "i-snap" in t] == [REF],
        10,
        "the late one stays",
    )
    assert runtime.inspect_image(REF).id == made


@pytest.mark.parametrize("verb", ["seal_image", "remove_image"])
def test_an_engine_that_dies_after_the_commit_only_delays_the_snapshot(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch, verb: str
) -> None:
    secret = workspace(secret_env={"TOKEN": "x"})
    fake_server.desire(images=(image(),), workspaces=(secret,))
    launch()
    reaches(fake_server, "running")
    runtime.deadly.add(verb)
    fake_server.desire(images=(image(), snap()), workspaces=(secret,))
    eventually(lambda: runtime.away, 10, "the engine lives")
    runtime.away = False
    result = ends(fake_server, "finished")
    tags = [tag for i in runtime.images.values() for tag in i.tags if "i-snap" in tag]
    assert tags == [REF]
    assert result.engine_id == runtime.inspect_image(REF).id
    assert runtime.mutations.count("commit_container") == 1
