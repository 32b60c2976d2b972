"""Three engines as three hosts of one server: metrics, settings, switches and silence, live."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.live_socket import LiveSocket
from tests.e2e.scenario import User
from tests.ground import process
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.server import ROOT, RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.ground.engine import PrivateEngine

# An agent whose machine's clock is wrong; only the wall clock, as on a real machine.
_SKEWED = """
import sys
from datetime import timedelta
from agent import clock
right = clock.utc_now
clock.utc_now = lambda: right() + timedelta(minutes=float(sys.argv[1]))
from agent.cli import main
sys.exit(main(["run"]))
"""


@dataclass
class Agent:
    """`minutes`: how far the clock of its machine is ahead."""

    host: Any
    engine: PrivateEngine
    folder: Path
    url: str
    token: str
    minutes: int
    running: process.Child | None = field(default=None)

    def start(self) -> None:
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("DOCKER_", "TRAILER_"))}
        self.running = process.start(
            [sys.executable, "-c", _SKEWED, str(self.minutes)],
            self.folder / "log",
            env={
                **outer,
                "TRAILER_SERVER_URL": self.url,
                "TRAILER_AGENT_STATE_DIR": str(self.folder),
                "TRAILER_ENROLMENT_TOKEN": self.token,
                "TRAILER_AGENT_SELF_UPDATE": "0",
                "DOCKER_HOST": self.engine.url,
            },
            cwd=ROOT,
        )

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.wait()
            self.running = None


@dataclass
class Fleet:
    user: User
    agents: dict[str, Agent]


@pytest.fixture
def fleet(
    clean_engine: PrivateEngine,
    engine_factory: Callable[..., PrivateEngine],
    tmp_path: Path,
) -> Iterator[Fleet]:
    trailer, agents = RunningTrailer(clean_engine.url), dict[str, Agent]()
    try:
        user = User(trailer.start())
        user.online_host()
        for name, minutes in (("north", 10), ("south", -10)):
            host = user.post("/hosts/", {"name": name, "heartbeat_interval": 2}, status=201)
            token = user.post(f"/hosts/{host['id']}/enrolment/", status=201)["token"]
            folder = tmp_path / name
            folder.mkdir()
            agents[name] = Agent(host, engine_factory(), folder, trailer.url, token, minutes)
            agents[name].start()
        yield Fleet(user, agents)
    finally:
        for agent in agents.values():
            agent.kill()
        trailer.destroy()


def test_three_hosts_are_measured_set_switched_and_missed_live(fleet: Fleet) -> None:
    user, north, south = fleet.user, fleet.agents["north"], fleet.agents["south"]
    hosts = user.get("/hosts/")["results"]
    assert len(hosts) == 3
    names = [f"{kind}:{host['id']}" for host in hosts for kind in ("host", "usage")]
    live = LiveSocket(user.trailer, *names)
    try:
        _all_are_online_and_clocks_decide_nothing(fleet, live, hosts)
        workspace = _a_workspace_runs_and_is_measured(user, north)
        _a_switch_acts_with_the_next_heartbeat(user, live, north)
        _a_disabled_host_stops_and_an_enabled_one_goes_on(user, live, north, workspace)
        south.kill()
        _shown(live, south, "offline")
        assert live.latest(f"host:{south.host['id']}")["stale_since"]
        south.start()
        _shown(live, south, "online")
        assert live.latest(f"host:{north.host['id']}")["status"] == "online"
    finally:
        live.close()


def _shown(live: LiveSocket, agent: Agent, status: str) -> None:
    resource = f"host:{agent.host['id']}"
    eventually(
        lambda: live.latest(resource).get("status") == status, 40, f"{resource} is not {status}"
    )


def _all_are_online_and_clocks_decide_nothing(fleet: Fleet, live: LiveSocket, hosts: Any) -> None:
    def online() -> bool:
        shown = [live.latest(f"host:{host['id']}").get("status") for host in hosts]
        return shown == ["online"] * len(hosts)

    eventually(online, 40, "not all hosts are shown online")
    for agent in fleet.agents.values():
        seen = fleet.user.get(f"/hosts/{agent.host['id']}/")
        assert abs(seen["clock_skew_seconds"] - agent.minutes * 60) < 30
        assert (seen["fresh"], seen["status"]) == (True, "online")


def _a_workspace_runs_and_is_measured(user: User, north: Agent) -> Any:
    host = north.host["id"]
    body = {"name": "bb", "host": host, "kind": "pull", "reference": BUSYBOX}
    image = user.post("/images/", body, status=201)["id"]
    fields = {"image": image, "command": RUN_UNTIL_STOPPED, "drain_timeout": 2}
    workspace = user.post("/workspaces/", {"name": "w", "host": host, **fields}, status=201)
    user.wait_for(workspace, "running")

    def measured() -> Any:
        return user.get(f"/workspaces/{workspace['id']}/metrics/")["results"]

    rows = eventually(measured, 20, "there are no samples of the workspace")
    assert rows[-1]["memory_bytes"] > 0
    assert user.get(f"/hosts/{host}/metrics/")["results"]
    return workspace


def _a_switch_acts_with_the_next_heartbeat(user: User, live: LiveSocket, north: Agent) -> None:
    host = north.host["id"]
    process_before = north.running
    frames = live.frames[f"usage:{host}"]
    assert frames[-1]["host"]["memory_bytes"]
    user.patch(f"/hosts/{host}/", {"metrics": {"host": False}, "heartbeat_interval": 1})
    seen = len(frames)
    eventually(lambda: frames[-1]["host"]["memory_bytes"] is None, 15, "the host is measured on")
    # Counted in heartbeats, not in seconds of a busy machine: one may have been on its way, and
    # the answer to the next one carries the setting.
    measured = [f for f in frames[seen:] if f["host"]["memory_bytes"] is not None]
    assert len(measured) <= 2, "it acted later than with the next heartbeat"
    count = len(frames)
    eventually(lambda: len(frames) >= count + 3, 10, "heartbeats do not come at the new pace")
    assert north.running is process_before
    assert north.running is not None
    assert north.running.poll() is None


def _a_disabled_host_stops_and_an_enabled_one_goes_on(
    user: User, live: LiveSocket, north: Agent, workspace: Any
) -> None:
    user.patch(f"/hosts/{north.host['id']}/", {"enabled": False})
    _shown(live, north, "disabled")
    stopped = user.wait_for(workspace, "stopped")
    assert stopped["message"] == "Host is disabled."
    user.patch(f"/hosts/{north.host['id']}/", {"enabled": True})
    _shown(live, north, "online")
    user.wait_for(workspace, "running")
