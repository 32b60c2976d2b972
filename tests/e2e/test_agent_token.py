"""The token of a real agent at a real server, changed every second, under kills and a restore."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.e2e.scenario import User
from tests.ground.server import ROOT, RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_ENGINE = "unix:///nowhere/docker.sock"


class Scene:
    """A server and one agent of its own; without an engine, which tokens have no need of."""

    def __init__(self, folder: Path) -> None:
        self.state_dir = folder / "agent"
        settings = {"TRAILER_AGENT_TOKEN_AGE": "1", "TRAILER_EMBEDDED_AGENT": "0"}
        self.server = RunningTrailer(NO_ENGINE, settings).start()
        self.user = User(self.server)
        body = {"name": "far", "heartbeat_interval": 1, "reconcile_interval": 1}
        self.host_id = self.user.post("/hosts/", body, status=201)["id"]
        self.log = folder / "agent.log"
        self.agent: subprocess.Popen[bytes] | None = None

    def start_agent(self, enrolment: str = "") -> None:
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("DOCKER_", "TRAILER_"))},
            "TRAILER_SERVER_URL": self.server.url,
            "TRAILER_AGENT_STATE_DIR": str(self.state_dir),
            "TRAILER_ENROLMENT_TOKEN": enrolment,
            "DOCKER_HOST": NO_ENGINE,
        }
        with self.log.open("ab") as log:
            self.agent = subprocess.Popen(
                [sys.executable, "-m", "agent", "run"], cwd=ROOT, env=environment, stderr=log
            )

    def kill_agent(self) -> None:
        if self.agent is not None:
            self.agent.send_signal(signal.SIGKILL)
            self.agent.wait(10)

    def token(self) -> str:
        return str(json.loads((self.state_dir / "identity.json").read_bytes())["token"])

    def status_of(self, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self.server.url}/api/agent/v1/check"
        return requests.get(url, headers=headers, timeout=10).status_code

    def beats_on(self) -> None:
        """Heard after this moment."""
        before = self.host()["last_heartbeat"]
        eventually(
            lambda: self.host()["last_heartbeat"] != before, 20, self.log.read_text()[-3000:]
        )

    def changes(self) -> None:
        before = self.token()
        eventually(lambda: self.token() != before, 20, self.log.read_text()[-3000:])

    def host(self) -> Any:
        return self.user.get(f"/hosts/{self.host_id}/")

    def close(self) -> None:
        self.kill_agent()
        self.server.destroy()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()


def test_an_agents_token_changes_all_the_time_and_nothing_locks_it_out(
    scene: Scene, tmp_path: Path
) -> None:
    line = scene.user.post(f"/hosts/{scene.host_id}/enrolment/", status=201)
    scene.start_agent(line["token"])
    eventually(lambda: scene.host()["status"] == "online", 30, "not online")
    first = scene.token()
    scene.server.manage("backup", str(tmp_path / "backup.tar.gz"))
    scene.changes()
    scene.changes()
    assert scene.status_of(first) == 401
    # Killed wherever it happens to be between two tokens.
    for _ in range(2):
        scene.kill_agent()
        scene.start_agent()
        scene.changes()
    # The backup knows none of today's tokens.
    newest = scene.token()
    scene.server.kill()
    scene.server.manage("restore", str(tmp_path / "backup.tar.gz"), "--yes")
    scene.server.start()
    assert scene.status_of(newest) == 401
    # An agent of a later session than the restored one ends; its container would start it again.
    eventually(lambda: scene.agent is not None and scene.agent.poll() is not None, 30)
    scene.start_agent()
    scene.beats_on()
    scene.changes()
    assert scene.log.read_text().count("Traceback") == 0
    scene.user.post(f"/hosts/{scene.host_id}/revoke/")
    assert scene.status_of(scene.token()) == 401
    eventually(lambda: "Enrol the host again" in scene.log.read_text(), 20)
