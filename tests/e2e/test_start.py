"""How Trailer starts: first password, no default secret, one server per data folder, backends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import websockets.sync.client

from tests.e2e.scenario import User
from tests.ground.server import ROOT, USERNAME
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.server import RunningTrailer


def test_without_a_password_one_is_generated_and_printed_only_once(
    trailer_factory: Callable[..., RunningTrailer], clean_engine: PrivateEngine
) -> None:
    server = trailer_factory(
        clean_engine.url,
        from_nothing=True,
        TRAILER_ADMIN_PASSWORD="",
        TRAILER_EMBEDDED_AGENT="0",
    )
    shown = re.search(r"Password:\s+(\S+)", server.log())
    assert shown is not None, server.log()
    password = shown.group(1)
    answer = server.session.post(
        f"{server.url}/api/v1/auth/token/",
        json={"username": USERNAME, "password": password},
        timeout=10,
    )
    assert answer.status_code == 200
    server.restart()
    assert server.log(1000).count(password) == 1


def test_keys_are_made_on_the_first_start_and_only_their_owner_may_read_them(
    trailer_factory: Callable[..., RunningTrailer], clean_engine: PrivateEngine
) -> None:
    servers = [trailer_factory(clean_engine.url, TRAILER_EMBEDDED_AGENT="0") for _ in range(2)]
    keys = []
    for server in servers:
        for name in ("secret.key", "fernet.keys"):
            path = server.folder / "data" / name
            assert path.stat().st_mode & 0o077 == 0
            keys.append(path.read_text())
    assert len(set(keys)) == 4


def _start(*, data_dir: Path, bind: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to end by itself, with a sentence."""
    return subprocess.run(
        [sys.executable, "manage.py", "standalone"],
        cwd=ROOT,
        env={**os.environ, "TRAILER_DATA_DIR": str(data_dir), "TRAILER_BIND": bind},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_second_server_on_the_same_data_folder_refuses_to_start(
    running_trailer: RunningTrailer,
) -> None:
    second = _start(data_dir=running_trailer.folder / "data", bind="127.0.0.1:0")
    assert second.returncode != 0
    assert "Another Trailer already runs on the data folder" in second.stderr


def test_a_taken_port_is_refused_with_a_sentence(running_trailer: RunningTrailer) -> None:
    data_dir = running_trailer.folder / "other"
    second = _start(data_dir=data_dir, bind=f"127.0.0.1:{running_trailer.port}")
    assert second.returncode != 0
    assert "Set TRAILER_BIND to another one" in second.stderr
    assert "Password" not in second.stdout
    assert not list(data_dir.glob("*.sqlite3")), "a database was made for nothing"


def test_the_whole_path_works_on_postgresql_and_redis(
    trailer_factory: Callable[..., RunningTrailer],
    clean_engine: PrivateEngine,
    postgres_url: str,
    redis_url: str,
) -> None:
    server = trailer_factory(clean_engine.url, DATABASE_URL=postgres_url, REDIS_URL=redis_url)
    user = User(server)
    assert server.session.get(f"{server.url}/readyz", timeout=10).status_code == 200
    address = server.url.replace("http", "ws") + "/ws/live/"
    headers = {"Authorization": f"Token {server.token()}"}
    with websockets.sync.client.connect(address, additional_headers=headers) as socket:
        socket.send(json.dumps({"subscribe": ["workspaces"]}))
        workspace = user.workspace("on-postgres")
        seen: list[str] = []

        def running() -> bool:
            state = json.loads(socket.recv(timeout=30))
            if state.get("resource") == f"workspace:{workspace['id']}":
                seen.append(state["status"])
            return bool(seen) and seen[-1] == "running"

        eventually(running, 60, "the badge did not become running")
    user.delete(f"/workspaces/{workspace['id']}/")


def test_the_agent_of_a_killed_server_ends_and_a_new_one_takes_over(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    user = User(running_trailer)
    workspace = user.running("survivor")
    running_trailer.kill()
    state_dir = str(running_trailer.folder / "data" / "agent")

    def agents() -> list[int]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TRAILER_AGENT_STATE_DIR") == state_dir:
                    found.append(process.pid)
        return found

    eventually(lambda: not agents(), 20, "the agent outlived its killed server")
    running_trailer.start()
    user.online_host()
    user.patch(f"/workspaces/{workspace['id']}/", {"env": {"A": "1"}})
    user.wait_for(workspace, "running")
    container = engine_client.containers.get("trailer-survivor")
    assert "A=1" in container.attrs["Config"]["Env"]
