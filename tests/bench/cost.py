"""What an agent with fifty workspaces costs while nothing changes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

from tests.bench.table import Row

if TYPE_CHECKING:
    from tests.ground.proxy import DockerApiProxy
    from tests.ground.server import RunningTrailer

MIB = 1024 * 1024
QUIET = 3.0


def idle_rows(trailer: RunningTrailer, proxy: DockerApiProxy, seconds: float) -> list[Row]:
    """Waits until the agent is at rest, then watches it for some seconds."""
    agent = agent_of(trailer)
    _wait_for_rest(proxy)
    full_looks = _until_next_full_look(proxy)
    before, begun = agent.cpu_times(), time.monotonic()
    proxy.forget_calls()
    time.sleep(seconds)
    after, elapsed = agent.cpu_times(), time.monotonic() - begun
    calls, changes = len(proxy.calls), len(proxy.mutating_calls)
    used = after.user + after.system - before.user - before.system
    return [
        Row("idle: engine calls", calls, f"in {elapsed:.0f} s", 0),
        Row("idle: changes", changes, f"in {elapsed:.0f} s", 0),
        Row("idle: agent's CPU", used / elapsed * 100, "% of a core", 1.0),
        Row("idle: agent's memory", agent.memory_info().rss / MIB, "MiB", 60.0),
        Row("full observation every 60 s: engine calls", full_looks, "calls"),
    ]


def agent_of(trailer: RunningTrailer) -> psutil.Process:
    for child in psutil.Process(trailer.pid).children(recursive=True):
        command = child.cmdline()
        if "agent" in command and "run" in command:
            return child
    raise LookupError("the server has no agent")


def _wait_for_rest(proxy: DockerApiProxy) -> None:
    last, since = len(proxy.calls), time.monotonic()
    while time.monotonic() - since < QUIET:
        time.sleep(0.1)
        if len(proxy.calls) != last:
            last, since = len(proxy.calls), time.monotonic()


def _until_next_full_look(proxy: DockerApiProxy) -> int:
    """The engine calls of one full look; afterwards a minute of silence lies ahead."""
    proxy.forget_calls()
    deadline = time.monotonic() + 75
    while not proxy.calls:
        if time.monotonic() > deadline:
            return 0
        time.sleep(0.1)
    _wait_for_rest(proxy)
    return len(proxy.calls)
