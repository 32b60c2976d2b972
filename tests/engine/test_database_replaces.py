"""A database loses no row that it acknowledged, whatever replaces it and whatever is killed."""

from __future__ import annotations

from itertools import count, cycle, product
from typing import TYPE_CHECKING

import pytest

from tests.engine.database_scene import NAME, RECOVERED, DatabaseScene
from tests.ground.faults import Moment
from tests.ground.postgres_image import POSTGRES
from tests.ground.size import EVERY_CAUSE_WITH_EVERY_KILL
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy

pytestmark = pytest.mark.timeout(900)
CREATE = "POST /containers/create"
STOP = "POST /containers/{id}/stop"
START = "POST /containers/{id}/start"
REMOVE = "DELETE /containers/{id}"
RENAME = "POST /containers/{id}/rename"
BEFORE, AFTER = Moment.BEFORE_FORWARD, Moment.AFTER_EXECUTE

# Who dies, at which call, and at which moment of it.
KILLS: tuple[tuple[str, str, Moment], ...] = (
    *(
        ("agent", at, when)
        for at in (CREATE, STOP, START, REMOVE, RENAME)
        for when in (BEFORE, AFTER)
    ),
    ("engine", STOP, BEFORE),
    ("engine", STOP, AFTER),
    ("engine", START, AFTER),
    ("engine", REMOVE, BEFORE),
    ("old container", CREATE, AFTER),
    ("new container", START, AFTER),
    ("new container", REMOVE, BEFORE),
    *(("nobody", "", AFTER),) * 3,
)


@pytest.fixture
def scene(
    clean_engine: PrivateEngine,
    proxy: DockerApiProxy,
    engine_client: docker.DockerClient,
    tmp_path: Path,
) -> Iterator[DatabaseScene]:
    made = DatabaseScene(clean_engine, proxy, engine_client, tmp_path)
    yield made
    made.close()


class Causes:
    """All that replaces a container, each as often as it is wanted."""

    def __init__(self, scene: DatabaseScene) -> None:
        self._scene = scene
        self._number = count(1)
        self.all: tuple[Callable[[], object], ...] = (
            self.edit,
            self.redeploy,
            self.moved_image,
            self.restored_snapshot,
            self.rollback,
            self.drift,
        )

    def edit(self) -> None:
        self._scene.host.edit("db", env={"NUMBER": str(next(self._number))})

    def redeploy(self) -> None:
        spec = self._scene.host.workspaces["db"].spec
        self._scene.host.edit("db", generation=spec.generation + 1)

    def moved_image(self) -> None:
        """The same reference means something else, as after a pull."""
        made = self._commit()
        self._scene.name_image(made, self._scene.host.workspaces["db"].spec.image_ref)
        self._scene.host.respell("db", image_engine_id=made)

    def restored_snapshot(self) -> None:
        self._become("snapshot", self._commit())

    def rollback(self) -> None:
        """To the image that it had first."""
        self._become("rollback", POSTGRES)

    def drift(self) -> None:
        """Only a new container gets rid of a limit that should not be there."""
        self._scene.client.api.update_container(NAME, mem_limit="512m", memswap_limit="1g")

    def _commit(self) -> str:
        """Another image with the same content."""
        changes = [f"LABEL number={next(self._number)}"]
        made = self._scene.client.api.commit(NAME, pause=False, changes=changes)
        return str(made["Id"])

    def _become(self, word: str, image: str) -> None:
        """Another reference, and another environment: what it means may be what was there."""
        host, name = self._scene.host, f"{word}{next(self._number)}"
        reference = f"trailer-test/postgres-{name}:1"
        fields = {"image_engine_id": self._scene.name_image(image, reference)}
        with host.one_edit():
            fields |= {"image_ref": reference, "image_id": host.image(name, ref=reference).id}
            host.edit("db", env={"NUMBER": name}, **fields)


def test_no_acknowledged_row_is_lost_whatever_replaces_the_database_and_dies(
    scene: DatabaseScene,
) -> None:
    scene.open()
    causes = Causes(scene).all
    rounds = (
        product(causes, KILLS)
        if EVERY_CAUSE_WITH_EVERY_KILL
        else zip(cycle(causes), KILLS, strict=False)
    )
    for cause, (who, at, moment) in rounds:
        what = f"{getattr(cause, '__name__')}, {who} killed at {at} ({moment.name})"  # noqa: B009
        kills: dict[str, Callable[[], object]] = {
            "agent": scene.kill_agent,
            "engine": scene.kill_engine,
            "old container": lambda: scene.crash(NAME),
            "new container": lambda: scene.crash(f"{NAME}-next"),
        }
        try:
            scene.replace(
                cause,
                kill=kills.get(who),
                at=at,
                moment=moment,
                cut=not who.endswith("container"),
            )
        except AssertionError as problem:
            raise AssertionError(f"{what}: {problem}") from problem
        acknowledged = scene.acknowledged()
        lost = acknowledged - scene.stored()
        assert not lost, f"{what}: {len(lost)} of {len(acknowledged)} rows are lost"
        assert scene.overlaps() == "", f"{what}: two servers ran on one folder"
        if who in {"agent", "nobody"}:
            # Nothing but the agent died: each server was let finish.
            assert RECOVERED not in scene.log(), f"{what}: {scene.log()}"


def test_two_servers_on_one_folder_would_be_noticed(scene: DatabaseScene) -> None:
    """What the test above relies on: these are told that they may share it, and they do."""
    scene.open(shared_volumes=True)
    Causes(scene).edit()
    scene.agent.look_again()
    eventually(scene.overlaps, 30, "they never ran at once")
