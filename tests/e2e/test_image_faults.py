"""Pulls that go wrong, on a real engine and registry: one clear message each, the old container
goes on, and all is well again by itself once the cause is gone."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.scenario import User
from tests.ground.cutter import CuttingRelay
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED, push
from tests.ground.registry import LocalRegistry
from tests.ground.server import RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.fixtures_engine import EngineFactory

MIB = 1024 * 1024
DISK = 160 * MIB
LARGE = 24


class Scene:
    """A workspace that runs an image of a private registry, which lies behind a relay."""

    def __init__(
        self,
        user: User,
        engine: PrivateEngine,
        client: docker.DockerClient,
        registry: LocalRegistry,
        relay: CuttingRelay,
    ) -> None:
        self.user = user
        self.engine = engine
        self.client = client
        self.registry = registry
        self.relay = relay
        self.credential = user.registry(relay.address, registry.username, registry.password)
        self.publish("first")
        self.image = user.pulled_image(
            "app", self.reference("first"), registry=self.credential["id"]
        )
        user.wait_for_image(self.image, "finished")
        self.workspace = user.running("web", image=self.image["id"])

    def reference(self, tag: str) -> str:
        return f"{self.relay.address}/team/app:{tag}"

    def publish(self, tag: str, *, megabytes: int = 0) -> None:
        """Something new in the registry that this host does not have."""
        writes = f"dd if=/dev/urandom of=/big bs=1M count={megabytes}; echo {tag} > /word"
        work = self.client.containers.create(BUSYBOX, ["sh", "-c", writes])
        work.start()
        work.wait()
        made = work.commit(conf={"Cmd": RUN_UNTIL_STOPPED})
        work.remove()
        target = f"{self.registry.address}/team/app:{tag}"
        push(self.client, str(made.id), target, self.registry.auth)
        self.client.api.remove_image(target)

    def want(self, tag: str) -> None:
        self.user.patch(f"/images/{self.image['id']}/", {"reference": self.reference(tag)})

    def fails(self, *words: str, timeout: float = 60) -> str:
        """One sentence that names the matter, and a workspace that does not notice."""
        told = self.user.wait_for_image(self.image, "failed", timeout)["message"]
        for word in words:
            assert word in told, told
        assert "\n" not in told.strip()
        assert self.registry.password not in told
        assert self.running_id() == self.workspace["container_id"]
        return str(told)

    def heals(self, timeout: float = 60) -> None:
        """Without anybody's doing: the image arrives, then the workspace is replaced."""
        old = self.workspace["container_id"]
        self.user.wait_for_image(self.image, "finished", timeout)
        eventually(lambda: self.running_id() not in ("", old), 30, "it was not replaced")
        self.workspace = self.user.wait_for(self.workspace, "running")
        newest = self.user.get(f"/images/{self.image['id']}/builds/")["results"][0]
        assert newest["trigger"] == "retry"

    def running_id(self) -> str:
        found = self.client.api.containers(filters={"name": "^/trailer-web$"})
        return str(found[0]["Id"]) if found else ""


@pytest.fixture
def scene(engine_factory: EngineFactory) -> Iterator[Scene]:
    # The engine's own tries, five with longer and longer pauses, would only take time.
    engine = engine_factory("--max-download-attempts", "1", disk_bytes=DISK)
    registry = LocalRegistry(username="alice", password="s3cret-word").start()
    relay = CuttingRelay(registry.port).start()
    server = RunningTrailer(engine.url, {"TRAILER_PULL_RETRY_SECONDS": "1"})
    try:
        user = User(server.start())
        host = user.online_host()
        user.patch(f"/hosts/{host['id']}/", {"disk_free_min_bytes": 0})
        with closing(engine.client()) as client:
            yield Scene(user, engine, client, registry, relay)
    finally:
        server.destroy()
        relay.stop()
        registry.destroy()


def test_every_way_a_pull_fails_is_told_and_heals(scene: Scene) -> None:
    user, registry, relay = scene.user, scene.registry, scene.relay
    # A wrong password.
    scene.publish("second")
    user.patch(f"/registries/{scene.credential['id']}/", {"password": "guess"})
    scene.want("second")
    assert "guess" not in scene.fails("refused access", "team/app:second")
    user.patch(f"/registries/{scene.credential['id']}/", {"password": registry.password})
    scene.heals()

    # A tag that is not there yet.
    scene.want("third")
    scene.fails("team/app:third was not found in its registry")
    scene.publish("third")
    scene.heals()

    # A registry that is down.
    scene.publish("fourth")
    registry.stop()
    scene.want("fourth")
    scene.fails(f"The registry {relay.address} cannot be reached")
    registry.start()
    scene.heals()

    # A blob that breaks off each time.
    scene.publish("fifth", megabytes=4)
    relay.cut_after = 1 * MIB
    scene.want("fifth")
    scene.fails("team/app:fifth broke off")
    assert relay.cuts > 0
    relay.cut_after = None
    scene.heals()

    # A disk that is really full.
    scene.publish("sixth", megabytes=LARGE)
    room = os.statvfs(scene.engine.data_root)
    filler = scene.engine.data_root / "filler"
    filler.write_bytes(b"\1" * (room.f_bavail * room.f_frsize - LARGE // 2 * MIB))
    scene.want("sixth")
    scene.fails("The disk of this host is full")
    filler.unlink()
    scene.heals()
    # Nothing of all that restarted the workspace but its new images.
    kinds = [kind for kind, _ in user.causes(scene.workspace) if kind != "created"]
    assert kinds == ["replace"] * 5
