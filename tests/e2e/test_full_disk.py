"""A server whose disk fills up: it names the disk, and goes on after room is made."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.e2e.scenario import User
from tests.ground.postgres import PrivatePostgres
from tests.ground.server import RunningTrailer
from tests.ground.wait import always, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

    from tests.ground.engine import PrivateEngine

FULL = "is full"


@pytest.fixture
def small_disk() -> Iterator[Path]:
    # Where users other than root get at it.
    folder = Path(tempfile.mkdtemp(prefix="trailer-test-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)
    folder.rmdir()


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


@pytest.fixture
def trailer_on_postgresql(
    clean_engine: PrivateEngine, small_disk: Path
) -> Iterator[RunningTrailer]:
    """Its tables, and nothing else of PostgreSQL, are on the small disk."""
    postgres = PrivatePostgres()
    try:
        postgres.start()
        if postgres.user:
            shutil.chown(small_disk, postgres.user, postgres.user)
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
            connection.execute("CREATE DATABASE trailer TABLESPACE small")
        address = postgres.url.removesuffix("/postgres") + "/trailer"
        server = RunningTrailer(clean_engine.url, {"DATABASE_URL": address})
        try:
            yield server.start()
        finally:
            server.destroy()
    finally:
        postgres.destroy()


def test_a_full_disk_of_a_database_server_is_told_and_healed_too(
    trailer_on_postgresql: RunningTrailer, small_disk: Path
) -> None:
    trailer = trailer_on_postgresql
    user = User(trailer)
    host = user.online_host()["id"]
    filler = fill(small_disk)

    def refused() -> bool:
        # A text that cannot be compressed, so that the table has to grow.
        body = {"description": secrets.token_hex(30_000)}
        answer = trailer.api("PATCH", f"/hosts/{host}/", json=body)
        return answer.status_code == 503 and FULL in answer.json()["message"]

    eventually(refused, 20, "an edit is not refused for want of room")
    eventually(lambda: ready(trailer)[0] == 503, 5, "still ready")
    assert "The disk of the database on" in ready(trailer)[1]
    filler.unlink()
    eventually(lambda: ready(trailer)[0] == 200, 10, "not ready again")
    user.patch(f"/hosts/{host}/", {"description": "room again"})
    assert trailer.log(5000).count("the database's disk is full") == 1
