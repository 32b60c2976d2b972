"""Real registries: pushes, update checks and pulls with right, wrong and foreign passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.state import DesiredBuild, DesiredImage, RegistryCredential
from tests.engine.agent_inside import AgentInside
from tests.engine.agent_scene import state_of
from tests.engine.desired_host import DesiredHost
from tests.engine.snapshot_scene import wait_for_end
from tests.ground.images import BUSYBOX, HTTPD, push
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from agent.protocol.report import ImageObserved
    from tests.ground.engine import PrivateEngine
    from tests.ground.registry import LocalRegistry


class Scene:
    def __init__(self, url: str, client: docker.DockerClient, folder: Path) -> None:
        self.client = client
        self.host = DesiredHost()
        self.agent = AgentInside(self.host, url, folder).start()

    def close(self) -> None:
        self.agent.stop()
        self.host.close()

    def follow(self, ref: str, *, check: int = 0, **fields: Any) -> DesiredImage:
        """A pulled image of policy `always`, nothing under way."""
        fields = {"update_policy": "always", "check": check, **fields}
        return self.host.image("app", ref=ref, **fields)

    def pull(self, ref: str, *, number: int, **fields: Any) -> None:
        """As the server asks for an update: a forced pull."""
        build = DesiredBuild(id=f"b-app-{number}", number=number, force=True)
        self.host.image("app", ref=ref, update_policy="always", build=build, **fields)

    def told(self, what: str, **fields: Any) -> ImageObserved:
        def found() -> ImageObserved | None:
            seen = self.host.server.image("i-app")
            right = seen and all(getattr(seen, name) == value for name, value in fields.items())
            return seen if right else None

        message = f"{what}: {self.host.server.image('i-app')}"
        seen = eventually(found, 20, message)
        assert seen is not None
        return seen


@pytest.fixture
def scene(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, tmp_path: Path
) -> Iterator[Scene]:
    made = Scene(clean_engine.url, engine_client, tmp_path)
    yield made
    made.close()


def of(registry: LocalRegistry, password: str = "") -> RegistryCredential:
    return RegistryCredential(
        server=registry.address, username="alice", password=password or registry.password
    )


def untag(client: docker.DockerClient, ref: str) -> None:
    if client.api.images(ref):
        client.api.remove_image(ref, force=True)


def test_a_new_digest_is_seen_pulled_and_replaces_the_workspace(
    scene: Scene, private_registry: LocalRegistry
) -> None:
    client, ref = scene.client, private_registry.reference("team/moving")
    first = push(client, BUSYBOX, ref, private_registry.auth)
    credential = of(private_registry)
    held = scene.follow(ref, credential=credential)
    web = scene.host.workspace("web", image="app")
    scene.agent.settle()
    seen = scene.told("the same digest", available_digest=first, digest=first)
    old = state_of(client)
    # Somebody pushes another image under the tag; this host still has the first one.
    second = push(client, HTTPD, ref, private_registry.auth)
    client.images.get(seen.engine_id).tag(ref)
    assert second != first
    scene.follow(ref, check=1, credential=credential)
    newer = scene.told("the newer digest", available_digest=second)
    assert (newer.digest, newer.engine_id, newer.message) == (first, seen.engine_id, "")
    scene.agent.settle()
    assert state_of(client) == old
    # The server reads that as a wish to pull.
    scene.pull(ref, number=2, credential=credential)
    result = wait_for_end(scene.host, "app", "finished", number=2)
    assert result.digest == second
    scene.agent.settle()
    assert state_of(client) == old
    scene.follow(ref, check=1, credential=credential)
    scene.host.respell("web", image_engine_id=result.engine_id)
    scene.agent.settle()
    assert state_of(client)[0] != old[0]
    assert state_of(client)[1] == "running"
    (event,) = scene.host.events("web")[1:]
    assert event.event == "replace"
    assert "image" in event.cause
    assert (held.id, web.id) == ("i-app", "w-web")
    untag(client, ref)


def test_a_failed_pull_never_stops_the_running_container(
    scene: Scene, registry: LocalRegistry
) -> None:
    client, ref = scene.client, registry.reference("team/gone")
    digest = push(client, BUSYBOX, ref)
    scene.follow(ref)
    scene.host.workspace("web", image="app")
    scene.agent.settle()
    scene.told("the same digest", available_digest=digest)
    old = state_of(client)
    registry.stop()
    try:
        scene.follow(ref, check=1)
        seen = scene.told("a failed look", available_digest="", present=True)
        eventually(lambda: "could not be compared" in scene.told("", present=True).message, 20)
        scene.pull(ref, number=2)
        failed = wait_for_end(scene.host, "app", "failed", number=2)
        assert registry.address in failed.message
        scene.agent.settle()
        assert state_of(client) == old
        assert seen.engine_id
    finally:
        registry.start()
    scene.follow(ref, check=2)
    scene.told("a good look", available_digest=digest, message="")
    assert state_of(client) == old
    untag(client, ref)


def test_a_wrong_password_is_a_failed_look_that_changes_nothing(
    scene: Scene, private_registry: LocalRegistry
) -> None:
    client, ref = scene.client, private_registry.reference("team/locked")
    digest = push(client, BUSYBOX, ref, private_registry.auth)
    scene.follow(ref, credential=of(private_registry, "guess"))
    eventually(lambda: "could not be compared" in str(scene.host.server.image("i-app")), 20)
    seen = scene.told("a failed look", available_digest="", present=True)
    assert "guess" not in seen.message
    scene.follow(ref, credential=of(private_registry), revision=2)
    scene.told("a good look", available_digest=digest, message="")
    untag(client, ref)


def test_a_password_for_another_server_is_not_sent(
    scene: Scene, private_registry: LocalRegistry, registry: LocalRegistry
) -> None:
    client, ref = scene.client, private_registry.reference("team/strict")
    push(client, BUSYBOX, ref, private_registry.auth)
    untag(client, ref)
    right_but_elsewhere = RegistryCredential(
        server=registry.address, username="alice", password=private_registry.password
    )
    scene.pull(ref, number=1, credential=right_but_elsewhere)
    failed = wait_for_end(scene.host, "app", "failed")
    assert "no basic auth credentials" in failed.message
    scene.pull(ref, number=2, credential=of(private_registry))
    wait_for_end(scene.host, "app", "finished", number=2)
    untag(client, ref)


def test_a_build_is_pushed_and_its_target_name_does_not_stay(
    scene: Scene, private_registry: LocalRegistry
) -> None:
    client, target = scene.client, private_registry.reference("team/made")
    made: dict[str, Any] = {
        "kind": "build",
        "ref": "trailer/i-made:latest",
        "reference": target,
        "push": True,
        "dockerfile": f"FROM {BUSYBOX}\nRUN echo pushed > /word",
    }
    build = DesiredBuild(id="b-made-1", number=1)
    scene.host.image("made", **made, credential=of(private_registry, "guess"), build=build)
    failed = wait_for_end(scene.host, "made", "failed")
    assert f"could not be pushed to {target}" in failed.message
    assert client.api.images("trailer/i-made:latest")
    build = DesiredBuild(id="b-made-2", number=2)
    scene.host.image("made", **made, credential=of(private_registry), build=build)
    finished = wait_for_end(scene.host, "made", "finished", number=2)
    assert client.api.images(target) == []
    auth = private_registry.auth
    assert client.images.get_registry_data(target, auth_config=auth).id == finished.digest
    client.images.pull(target, auth_config=auth)
    assert client.containers.run(target, ["cat", "/word"], remove=True) == b"pushed\n"
    untag(client, target)
    untag(client, "trailer/i-made:latest")


def test_nothing_due_means_no_call(scene: Scene, private_registry: LocalRegistry) -> None:
    client, ref = scene.client, private_registry.reference("team/quiet")
    digest = push(client, BUSYBOX, ref, private_registry.auth)
    scene.follow(ref, credential=of(private_registry))
    scene.agent.settle()
    scene.told("the first look", available_digest=digest)
    scene.agent.settle()
    runtime = scene.agent.supervisor.parts.runtime
    calls = runtime.calls
    always(lambda: runtime.calls == calls, 3, "a call although nothing was due")
    untag(client, ref)
