"""How many agents' polls the standalone server answers while nothing changes (304)."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests

from tests.bench.table import Row, percentile

if TYPE_CHECKING:
    from tests.e2e.scenario import User
    from tests.ground.server import RunningTrailer

CONNECTIONS = 8
AGENTS_PER_SECOND = 200.0


def poll_rows(trailer: RunningTrailer, user: User, seconds: float) -> list[Row]:
    """A host of its own, with a session like any agent's; the real agent is not disturbed."""
    headers = _session(trailer, user)
    headers["If-None-Match"] = _etag(trailer, headers)
    # The load comes from a process of its own: its threads must not wait for the bench's.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        times = pool.submit(_load, trailer.url, headers, seconds).result(seconds + 60)
    rate = len(times) / seconds
    return [
        Row("state polls (304), standalone server", rate, "requests/s"),
        Row("share of 200 polls/s (1,000 agents at 5 s)", AGENTS_PER_SECOND / rate, "of 1", 1.0),
        Row("state poll, p95", percentile(times, 95) * 1000, "ms", 100.0),
    ]


def _session(trailer: RunningTrailer, user: User) -> dict[str, str]:
    host = user.post("/hosts/", {"name": "polled"}, status=201)
    token = user.post(f"/hosts/{host['id']}/enrolment/", status=201)["token"]
    base = f"{trailer.url}/api/agent/v1"
    enrolled = requests.post(f"{base}/enrol", json={"token": token}, timeout=10).json()
    headers = {"Authorization": f"Bearer {enrolled['token']}", "Trailer-Protocol": "1"}
    body = {"agent_version": "bench", "protocol": 1}
    session = requests.post(f"{base}/session", json=body, headers=headers, timeout=10).json()
    return {**headers, "Trailer-Epoch": str(session["epoch"])}


def _etag(trailer: RunningTrailer, headers: dict[str, str]) -> str:
    reply = requests.get(f"{trailer.url}/api/agent/v1/state", headers=headers, timeout=10)
    assert reply.status_code == 200, reply.text
    json.loads(reply.content)
    return reply.headers["ETag"]


def _load(url: str, headers: dict[str, str], seconds: float) -> list[float]:
    times: list[float] = []
    threads = [
        threading.Thread(target=_ask, args=(url, headers, seconds, times))
        for _ in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _ask(url: str, headers: dict[str, str], seconds: float, times: list[float]) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        begun = time.monotonic()
        connection.request("GET", "/api/agent/v1/state", headers=headers)
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 304, reply.status
        times.append(time.monotonic() - begun)
    connection.close()
