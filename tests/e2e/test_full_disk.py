"""A server whose disk fills up: it names the disk, and goes on after room is made."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.scenario import User
from tests.ground.server import RunningTrailer
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine

FULL = "is full"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def trailer(clean_engine: PrivateEngine, small_disk: Path) -> Iterator[RunningTrailer]:
    data = small_disk / "data"
    server = RunningTrailer(clean_engine.url, {"TRAILER_DATA_DIR": str(data)})
    shutil.copytree(server.folder / "data", data)
    try:
        yield server.start()
    finally:
        server.destroy()


def fill(folder: Path) -> Path:
    """Takes all that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096):
            block = b"x" * size
            while True:
                try:
                    if file.write(block) < size:
                        break
                except OSError:
                    break
    return filler


def ready(server: RunningTrailer) -> tuple[int, str]:
    answer = server.session.get(f"{server.url}/readyz", timeout=10)
    return answer.status_code, answer.text


def test_a_full_disk_is_named_and_healed_by_making_room(
    trailer: RunningTrailer, small_disk: Path, engine_client: docker.DockerClient
) -> None:
    user = User(trailer)
    workspace = user.running("before")
    host = user.online_host()["id"]
    filler = fill(small_disk)
    eventually(lambda: ready(trailer)[0] == 503, 5, "still ready")
    told = ready(trailer)[1]
    assert FULL in told
    assert str(small_disk) in told

    def refused() -> bool:
        answer = trailer.api("PATCH", f"/hosts/{host}/", json={"description": "x" * 60_000})
        return answer.status_code == 503 and str(small_disk) in answer.json()["message"]

    for _ in range(5):
        eventually(refused, 20, "an edit is not refused for want of room")
    assert str(small_disk) in user.get(f"/hosts/{host}/")["message"]
    # Its agent, whose state is on the same disk, has something to do meanwhile.
    first = engine_client.containers.get("trailer-before")
    first.remove(force=True)
    always(lambda: ready(trailer)[0] == 503, 8, "ready without room", interval=0.5)
    lines = trailer.log(5000).splitlines()
    said = [line for line in lines if "level=error" in line]
    assert [line.count("the database's disk is full") for line in said] == [1]

    filler.unlink()
    eventually(lambda: ready(trailer)[0] == 200, 10, "not ready again")
    user.patch(f"/hosts/{host}/", {"description": "room again"})
    eventually(lambda: user.get(f"/hosts/{host}/")["status"] == "online", 30)
    assert user.get(f"/hosts/{host}/")["message"] == ""
    user.running("after")
    eventually(
        lambda: engine_client.containers.get("trailer-before").id != first.id,
        30,
        "the agent does not work any more",
    )
    user.wait_for(workspace, "running")
