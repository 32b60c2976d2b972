"""Snapshots: when they are planned, and how one ends, on an engine in memory."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from agent.diff.view import BuildRecord
from agent.observed import ObservedContainer, ObservedImage
from agent.plan import BuildFinding, Plan
from agent.protocol import naming
from agent.protocol.spec import HealthCheckSpec
from agent.protocol.state import DesiredBuild, DesiredImage, HostSettings, HostState
from agent.runtime.fake import FakeRuntime
from agent.steps import SnapshotImage
from tests.agent.bench import Bench
from tests.agent.documents import document, image, tombstone, workspace
from tests.agent.fake_server import FakeServer
from tests.agent.running import Launch, reaches
from tests.ground.wait import always, eventually

REF = naming.build_ref("i-snap")
COMMITTED = "trailer/i-snap:committed-b-snap"
STARTED = {"builds": {"b-snap": BuildRecord(status="started")}}


def snap(**fields: Any) -> DesiredImage:
    build = DesiredBuild(id="b-snap", number=1, **fields)
    return image(
        "snap", ref=REF, kind="snapshot", reference="", source_workspace_id="w-web", build=build
    )


def host(*, snapshot: DesiredImage | None = None, **fields: Any) -> HostState:
    return document(images=(image(), snapshot or snap()), workspaces=(workspace(**fields),))


def settled(bench: Bench, **fields: Any) -> ObservedContainer:
    bench.settle(document(workspaces=(workspace(**fields),)))
    found = bench.runtime.named("trailer-web")
    assert found is not None
    return found


def verbs(plan: Plan) -> list[str]:
    return [node.step.verb for node in plan.nodes]


def waiting(plan: Plan) -> list[str]:
    found = [finding for finding in plan.findings if isinstance(finding, BuildFinding)]
    assert {finding.status for finding in found} <= {"pending"}
    return [finding.message for finding in found]


# --- plans ---


def test_a_running_workspace_is_committed_under_the_tag_of_its_image(bench: Bench) -> None:
    container = settled(bench)
    plan = bench.plan(host())
    assert plan.render() == (
        f"1. snapshot_image 'snap' ({container.id[:12]} to {REF}): snapshot of web requested"
    )
    assert plan.nodes[0].step.claims == ("image:i-snap", "workspace:w-web")


def test_labels_and_secrets_of_the_container_are_blanked(bench: Bench) -> None:
    settled(bench, secret_env={"OLD": "1", "TOKEN": "2"}, labels={"team": "blue"})
    step = bench.plan(host(secret_env={"OLD": "1", "TOKEN": "2"}, labels={"team": "blue"}))
    (only,) = step.nodes
    assert isinstance(only.step, SnapshotImage)
    assert only.step.blank_env == ("OLD", "TOKEN")
    labels = only.step.labels
    assert labels[naming.LABEL_WORKSPACE] == labels[naming.LABEL_SPEC] == ""
    assert labels[naming.LABEL_IMAGE] == "i-snap"
    assert labels[naming.LABEL_BUILD] == "b-snap"
    assert "team" not in labels


def test_a_workspace_that_is_being_changed_is_not_committed_in_that_plan(bench: Bench) -> None:
    settled(bench)
    plan = bench.plan(host(env={"A": "1"}, revision=2))
    assert "snapshot_image" not in verbs(plan)
    assert "create_container" in verbs(plan)
    assert waiting(plan) == ["Waiting for workspace web, which is being changed."]


@pytest.mark.parametrize("busy", ["workspace:w-web", "image:i-snap"])
def test_what_is_busy_is_left_alone(bench: Bench, busy: str) -> None:
    settled(bench)
    assert bench.plan(host(), busy=frozenset({busy})).nodes == ()


def test_one_that_waits_for_its_health_check_is_committed_later(bench: Bench) -> None:
    bench.runtime.first_health = "starting"
    check = HealthCheckSpec(test=("CMD", "true"))
    container = settled(bench, health_check=check)
    plan = bench.plan(host(health_check=check))
    assert plan.nodes == ()
    assert plan.recheck_after == 1.0
    assert waiting(plan) == ["Waiting until workspace web is healthy."]
    bench.runtime.containers[container.id] = replace(container, health="healthy")
    assert verbs(bench.plan(host(health_check=check))) == ["snapshot_image"]


def test_a_stopped_workspace_is_handed_over_to_be_refused(bench: Bench) -> None:
    settled(bench)
    stopped = host(desired_state="stopped", revision=2)
    assert verbs(bench.plan(stopped)) == ["stop_container"]
    bench.cycle(stopped)
    assert verbs(bench.plan(stopped)) == ["snapshot_image"]


def test_the_snapshot_of_a_workspace_that_is_gone_is_ended(bench: Bench) -> None:
    gone = document(images=(image(), snap()))
    assert bench.plan(gone).render() == "1. cancel_build 'snap': the workspace is gone"
    running = {"running_builds": {"i-snap": "b-snap"}, "busy": frozenset({"image:i-snap"})}
    assert bench.plan(gone, **running).render() == "1. cancel_build 'snap': the workspace is gone"


def test_a_cancel_before_the_start_makes_nothing(bench: Bench) -> None:
    settled(bench)
    plan = bench.plan(host(snapshot=snap(cancel=True)))
    assert plan.render() == "1. cancel_build 'snap': cancel requested"


def test_a_container_that_a_dead_agent_was_committing_is_left_to_its_snapshot(
    bench: Bench,
) -> None:
    container = settled(bench)
    bench.runtime.containers[container.id] = replace(container, state="paused")
    plan = bench.plan(host(), **STARTED)
    assert plan.render() == (
        f"1. snapshot_image 'snap' ({container.id[:12]} to {REF}, resumed): "
        "snapshot of web requested"
    )
    cancelled = bench.plan(host(snapshot=snap(cancel=True)), **STARTED)
    assert isinstance(cancelled.nodes[0].step, SnapshotImage)
    assert cancelled.nodes[0].step.cancelled
    # Paused, but nobody asked for a snapshot: a hand did it.
    assert verbs(bench.plan(document(workspaces=(workspace(),)))) == ["unpause_container"]


def test_an_interrupted_snapshot_waits_until_its_workspace_runs_again(bench: Bench) -> None:
    container = settled(bench)
    bench.runtime.containers[container.id] = replace(container, state="exited", exit_code=137)
    assert verbs(bench.plan(host(), **STARTED)) == ["start_container"]


def test_what_a_given_up_snapshot_left_is_removed(bench: Bench) -> None:
    settled(bench)
    step = bench.plan(host()).nodes[0].step
    assert isinstance(step, SnapshotImage)
    bench.runtime.add_image(REF, image_id="sha256:late", labels=step.labels)
    failed = {"builds": {"b-snap": BuildRecord(status="cancelled")}}
    plan = bench.plan(host(), **failed)
    assert plan.render() == (
        f"1. remove_image 'snap' ({REF}): left by a snapshot that was given up"
    )
    # Of another try, or finished: it stays.
    bench.runtime.remove_image(REF)
    other = {**step.labels, naming.LABEL_BUILD: "b-other"}
    bench.runtime.add_image(REF, image_id="sha256:other", labels=other)
    assert bench.plan(host(), **failed).nodes == ()
    done = {"builds": {"b-snap": BuildRecord(status="finished")}}
    assert bench.plan(host(), **done).nodes == ()


def test_what_a_given_up_snapshot_left_without_a_name_is_removed(bench: Bench) -> None:
    settled(bench)
    step = bench.plan(host()).nodes[0].step
    assert isinstance(step, SnapshotImage)
    unnamed = ObservedImage(id="sha256:unnamed", labels=step.labels)
    bench.runtime.images[unnamed.id] = unnamed
    failed = {"builds": {"b-snap": BuildRecord(status="failed")}}
    assert bench.plan(host(), **failed).render() == (
        "1. remove_image 'snap' (sha256:unnamed): left by a snapshot that was given up"
    )
    # A newer snapshot may have taken its name from it: somebody's data.
    done = {"builds": {"b-snap": BuildRecord(status="finished")}}
    assert bench.plan(host(), **done).nodes == ()


@pytest.mark.parametrize("name", [COMMITTED, "trailer/i-snap:committed"], ids=["own", "older"])
@pytest.mark.parametrize("status", ["cancelled", "failed", "finished"])
def test_what_was_only_committed_goes_however_the_snapshot_ended(
    bench: Bench, status: str, name: str
) -> None:
    """It has the workspace's secrets beside it."""
    settled(bench, secret_env={"TOKEN": "x"})
    step = bench.plan(host(secret_env={"TOKEN": "x"})).nodes[0].step
    assert isinstance(step, SnapshotImage)
    bench.runtime.add_image(name, image_id="sha256:late", labels=step.labels)
    desired = host(secret_env={"TOKEN": "x"})
    over = {"builds": {"b-snap": BuildRecord(status=status)}}
    removal = f"1. remove_image 'snap' ({name}): left by a snapshot that was given up"
    assert bench.plan(desired, **over).render() == removal
    newer = DesiredBuild(id="b-newer", number=2, done=True)
    later = host(snapshot=msgspec.structs.replace(snap(), build=newer), secret_env={"TOKEN": "x"})
    assert bench.plan(later).render() == removal
    # One that goes on makes use of it, or removes it by itself.
    assert verbs(bench.plan(desired, **STARTED)) == ["snapshot_image"]
    busy = {"running_builds": {"i-snap": "b-snap"}, "busy": frozenset({"image:i-snap"})}
    assert bench.plan(desired, **busy).nodes == ()


def test_what_the_engine_made_after_its_snapshot_was_deleted_goes(bench: Bench) -> None:
    settled(bench)
    step = bench.plan(host()).nodes[0].step
    assert isinstance(step, SnapshotImage)
    bench.runtime.add_image(COMMITTED, image_id="sha256:first", labels=step.labels)
    bench.runtime.add_image(REF, image_id="sha256:second", labels=step.labels)
    gone = document(workspaces=(workspace(),))
    ended = {"builds": {"b-snap": BuildRecord(status="cancelled", image_id="i-snap")}}
    assert [node.step.detail() for node in bench.plan(gone, **ended).nodes] == [COMMITTED, REF]
    # Without a record of the end only an order removes an image.
    assert [node.step.detail() for node in bench.plan(gone).nodes] == [COMMITTED]
    assert bench.plan(gone, **ended, hold_removals="An older backup was restored.").nodes == ()
    forged = {**step.labels, naming.LABEL_SIGNATURE: "0" * 64}
    bench.runtime.add_image(COMMITTED, image_id="sha256:first", labels=forged)
    bench.runtime.add_image(REF, image_id="sha256:second", labels=forged)
    assert bench.plan(gone, **ended).nodes == ()


def test_a_disabled_host_takes_no_snapshot(bench: Bench) -> None:
    settled(bench)
    desired = document(
        images=(image(), snap()),
        workspaces=(workspace(desired_state="stopped"),),
        settings=HostSettings(enabled=False),
    )
    assert "snapshot_image" not in verbs(bench.plan(desired))


# --- the whole agent ---


def words(server: FakeServer) -> list[str]:
    told = [s.status for s in server.all(type(server.status("w-web")))]
    return [word for i, word in enumerate(told) if i == 0 or told[i - 1] != word]


def begin(server: FakeServer, launch: Launch) -> Any:
    server.desire(images=(image(),), workspaces=(workspace(),))
    agent = launch()
    reaches(server, "running")
    server.desire(images=(image(), snap()), workspaces=(workspace(),))
    return agent


def ends(server: FakeServer, status: str) -> Any:
    eventually(
        lambda: (b := server.build("b-snap")) and b.status == status,
        10,
        f"{server.build('b-snap')}",
    )
    return server.build("b-snap")


def test_the_workspace_shows_that_it_is_being_committed(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    always(lambda: "unpause_container" not in runtime.mutations, 0.5, "woken in the middle")
    runtime.let_commit.set()
    result = ends(fake_server, "finished")
    assert result.engine_id == runtime.inspect_image(REF).id
    assert result.size_bytes == 1000
    reaches(fake_server, "running")
    assert words(fake_server)[-3:] == ["running", "snapshotting", "running"]
    assert [e.event for e in fake_server.events("w-web")] == ["create"]
    assert runtime.mutations.count("commit_container") == 1


def test_an_edit_waits_for_the_snapshot_and_other_work_does_not(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    edited = workspace(env={"A": "1"}, revision=2)
    fake_server.desire(images=(image(), snap()), workspaces=(edited, workspace("other")))
    reaches(fake_server, "running", "w-other")
    assert fake_server.status_word("w-web") == "snapshotting"
    runtime.let_commit.set()
    reaches(fake_server, "running", revision=2)


def test_a_cancel_wakes_the_container_before_the_engine_is_done(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    fake_server.desire(images=(image(), snap(cancel=True)), workspaces=(workspace(),))
    eventually(lambda: (c := runtime.named("trailer-web")) and c.state == "running")
    reaches(fake_server, "running")
    assert fake_server.build("b-snap").status == "building"  # type: ignore[union-attr]
    runtime.let_commit.set()
    assert ends(fake_server, "cancelled").message == "Cancelled: cancel requested."
    assert not [i for i in runtime.images.values() if REF in i.tags]


def test_a_deleted_workspace_goes_at_once_and_its_snapshot_ends(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "held"
    begin(fake_server, launch)
    reaches(fake_server, "snapshotting")
    order = tombstone("workspace", "w-web", "trailer-web")
    fake_server.desire(images=(image(), snap(cancel=True)), tombstones=(order,))
    eventually(lambda: fake_server.tombstone(order.id), 5)
    assert runtime.named("trailer-web") is None
    runtime.let_commit.set()
    ends(fake_server, "cancelled")


def test_an_engine_that_dies_each_time_is_not_asked_for_ever(
    fake_server: FakeServer, runtime: FakeRuntime, launch: Launch
) -> None:
    runtime.commits = "daemon dies"
    begin(fake_server, launch)
    result = ends(fake_server, "failed")
    assert result.message == "The engine broke off 3 times in the middle of it."
    reaches(fake_server, "running")
    container = runtime.named("trailer-web")
    assert container is not None
    assert container.state == "running"
    assert runtime.mutations.count("commit_container") == 3
    log = fake_server.book.logs["b-snap"].decode()
    assert log.count("Committing container") == 3
    assert log.endswith("The engine broke off 3 times in the middle of it.\n")
    assert result.log_bytes == len(fake_server.book.logs["b-snap"])
