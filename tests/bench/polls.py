"""How many agents' polls the standalone server answers while nothing changes (304)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import requests

from tests.bench.asking import Request, ask
from tests.bench.table import Row, percentile

if TYPE_CHECKING:
    from tests.e2e.scenario import User
    from tests.ground.server import RunningTrailer

AGENTS_PER_SECOND = 200.0


def poll_rows(trailer: RunningTrailer, user: User, seconds: float) -> list[Row]:
    """A host of its own, with a session like any agent's; the real agent is not disturbed."""
    times = ask(trailer.url, poll_of(trailer, user), seconds)
    rate = len(times) / seconds
    return [
        Row("state polls (304), standalone server", rate, "requests/s"),
        Row("share of 200 polls/s (1,000 agents at 5 s)", AGENTS_PER_SECOND / rate, "of 1", 1.0),
        Row("state poll, p95", percentile(times, 95) * 1000, "ms", 100.0),
    ]


def poll_of(trailer: RunningTrailer, user: User) -> Request:
    """What the agent of a new host asks again and again."""
    host = user.post("/hosts/", {"name": "polled"}, status=201)
    token = user.post(f"/hosts/{host['id']}/enrolment/", status=201)["token"]
    base = f"{trailer.url}/api/agent/v1"
    enrolled = requests.post(f"{base}/enrol", json={"token": token}, timeout=10).json()
    headers = {"Authorization": f"Bearer {enrolled['token']}", "Trailer-Protocol": "1"}
    body = {"agent_version": "bench", "protocol": 1}
    session = requests.post(f"{base}/session", json=body, headers=headers, timeout=10).json()
    headers["Trailer-Epoch"] = str(session["epoch"])
    # As it is: what stands in front of a deployment gives a compressed answer another mark.
    headers["Accept-Encoding"] = "identity"
    reply = requests.get(f"{base}/state", headers=headers, timeout=10)
    assert reply.status_code == 200, reply.text
    json.loads(reply.content)
    headers["If-None-Match"] = reply.headers["ETag"]
    return Request("/api/agent/v1/state", headers, 304)
