"""Snapshots by the real agent on a real engine: what they hold, what they must not, and how they
end when workspace, user, agent or engine get in the way."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from agent.protocol import naming
from tests.engine.agent_scene import names
from tests.engine.desired_host import DesiredHost
from tests.engine.snapshot_scene import SnapshotScene, history_of, images_with, wait_for_end
from tests.ground.images import BUSYBOX
from tests.ground.inside import file_in
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine


@pytest.fixture
def scene(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, tmp_path: Path
) -> Iterator[SnapshotScene]:
    made = SnapshotScene(DesiredHost(), clean_engine.url, engine_client, tmp_path)
    yield made
    made.close()


def test_a_snapshot_holds_the_files_and_a_new_workspace_starts_from_it(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    host = scene.host
    container = scene.running_workspace()
    started = container.attrs["State"]["StartedAt"]
    container.exec_run(["sh", "-c", "echo kept > /word"])
    scene.snapshot()
    result = wait_for_end(host, "snap", "finished")
    image = engine_client.images.get(naming.build_ref("i-snap"))
    assert result.engine_id == image.id
    assert result.size_bytes == image.attrs["Size"]
    assert history_of(host, "web")[-2:] == ["snapshotting", "running"]
    container.reload()
    assert (container.status, container.attrs["State"]["StartedAt"]) == ("running", started)
    assert [event.event for event in host.events("web")] == ["create"]
    host.image("snap", ref=naming.build_ref("i-snap"), kind="snapshot")
    host.workspace("copy", image="snap", image_engine_id=result.engine_id)
    scene.agent.settle()
    copy = engine_client.containers.get("trailer-copy")
    assert file_in(copy, "/word") == b"kept\n"
    assert copy.labels[naming.LABEL_WORKSPACE] == "w-copy"


def test_neither_ownership_nor_a_secret_passes_to_the_image(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    scene.running_workspace(
        env={"PLAIN": "yes"}, secret_env={"TOKEN": "hunter2-secret"}, labels={"team": "blue"}
    )
    scene.snapshot()
    wait_for_end(scene.host, "snap", "finished")
    ref = naming.build_ref("i-snap")
    config = engine_client.images.get(ref).attrs["Config"]
    labels, env = config["Labels"], config["Env"]
    assert labels["team"] == "blue"
    assert labels[naming.LABEL_IMAGE] == "i-snap"
    for inherited in (naming.LABEL_WORKSPACE, naming.LABEL_SPEC, naming.LABEL_REVISION):
        assert labels[inherited] == ""
    assert "PLAIN=yes" in env
    assert "TOKEN=" in env
    saved = b"".join(engine_client.api.get_image(ref))
    assert b"hunter2-secret" not in _texts(saved)
    # Nor does an image stay that the engine keeps without a name.
    assert images_with(engine_client, "hunter2-secret") == []
    tags = {tag for found in engine_client.api.images() for tag in found["RepoTags"] or ()}
    assert [tag for tag in tags if tag.startswith("trailer/i-snap")] == [ref]


def _texts(archive: bytes) -> bytes:
    """All of a saved image: configurations, manifests and layers."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = [tar.extractfile(member) for member in tar.getmembers() if member.isfile()]
        return b"".join(member.read() for member in members if member)


def test_a_stopped_workspace_is_refused_with_a_sentence(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    scene.running_workspace()
    scene.host.edit("web", desired_state="stopped")
    scene.agent.settle()
    scene.snapshot()
    result = wait_for_end(scene.host, "snap", "failed")
    assert "Workspace web is not running" in result.message
    assert engine_client.api.images(naming.build_ref("i-snap")) == []


def test_a_workspace_that_is_being_changed_is_committed_afterwards(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    old = scene.running_workspace()
    with scene.host.one_edit():
        scene.host.edit("web", env={"A": "2"})
        scene.snapshot()
    wait_for_end(scene.host, "snap", "finished")
    image = engine_client.images.get(naming.build_ref("i-snap"))
    assert "A=2" in image.attrs["Config"]["Env"]
    assert engine_client.containers.get("trailer-web").id != old.id


def test_a_snapshot_does_not_wait_for_builds(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    scene.running_workspace()
    for number in range(4):
        scene.host.build(f"slow{number}", f"FROM {BUSYBOX}\nRUN echo {number}; sleep 600")
    eventually(lambda: scene.host.server.book.logs.get("b-slow0-1"), 20, "no build began")
    scene.snapshot()
    wait_for_end(scene.host, "snap", "finished")
    for number in range(4):
        scene.host.cancel_build(f"slow{number}")
    scene.agent.settle()
    eventually(lambda: names(engine_client) == {"trailer-web"}, 5, "a build left something")


def test_a_cancelled_snapshot_lets_the_container_run_at_once_and_leaves_no_image(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    container = scene.running_workspace()
    scene.write(container, megabytes=400)
    scene.snapshot()
    eventually(lambda: scene.is_paused(container), 20, "never paused", interval=0.01)
    scene.cancel()
    # The limit of every cancel: the road through server and agent shares the machine's two cores.
    eventually(lambda: not scene.is_paused(container), 5, "still paused", interval=0.01)
    result = wait_for_end(scene.host, "snap", "cancelled")
    assert result.message == "Cancelled: cancel requested."
    scene.agent.settle()
    assert scene.snapshot_images() == []
    assert [event.event for event in scene.host.events("web")] == ["create"]


def test_a_workspace_deleted_in_the_middle_goes_and_its_snapshot_with_it(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    container = scene.running_workspace()
    scene.write(container, megabytes=300)
    scene.snapshot()
    eventually(lambda: scene.is_paused(container), 20, "never paused", interval=0.01)
    scene.host.delete_workspace("web")
    wait_for_end(scene.host, "snap", "cancelled")
    scene.agent.settle()
    assert engine_client.api.containers(all=True) == []
    assert scene.snapshot_images() == []


def test_a_retry_after_a_given_up_snapshot_holds_the_newer_files(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    container = scene.running_workspace()
    # As if an older try had ended late, after it was given up.
    labels = {naming.LABEL_IMAGE: "i-snap", naming.LABEL_BUILD: "b-older"}
    container.commit("trailer/i-snap", "latest", conf={"Labels": labels})
    container.exec_run(["sh", "-c", "echo new > /word"])
    scene.snapshot()
    result = wait_for_end(scene.host, "snap", "finished")
    seen = engine_client.containers.run(result.engine_id, ["cat", "/word"], remove=True)
    assert seen == b"new\n"
    assert len(scene.snapshot_images()) == 1


def test_a_container_paused_by_hand_is_woken_and_told(
    scene: SnapshotScene, engine_client: docker.DockerClient
) -> None:
    container = scene.running_workspace()
    container.pause()
    eventually(lambda: not scene.is_paused(container), 5, "still paused")
    eventually(lambda: [e.event for e in scene.host.events("web")] == ["create", "heal"], 5)
    always(lambda: not scene.is_paused(container), 0.3, "paused again")
