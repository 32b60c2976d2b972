"""What a request costs a deployment under WSGI, as it is served, and under ASGI; no engine."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import requests

from tests.bench.asking import Request, ask
from tests.bench.polls import AGENTS_PER_SECOND, poll_of
from tests.bench.table import Row, percentile
from tests.e2e.scenario import User
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer
from tests.ground.ways import Processes

if TYPE_CHECKING:
    import psutil

ROUNDS = 4
SECONDS = 3.0
WORKSPACES = 50
NO_ENGINE = "unix:///nowhere.sock"


def web_rows() -> list[Row]:
    trailer = RunningTrailer(NO_ENGINE, {"TRAILER_EMBEDDED_AGENT": "0"}, way=Processes)
    try:
        trailer.start()
        user = User(trailer)
        requests_by_name = {
            "state poll (304)": poll_of(trailer, user),
            f"list of {WORKSPACES} workspaces": _list(trailer, user),
            "page of workspaces": _page(trailer),
        }
        servers = {kind: Server(trailer, kind) for kind in ("wsgi", "asgi")}
        rows = []
        for name, request in requests_by_name.items():
            rows += _rows(name, request, servers)
        return rows
    finally:
        trailer.destroy()


class Server:
    """One kind of the deployment's web servers, without what stands in front of it."""

    def __init__(self, trailer: RunningTrailer, kind: str) -> None:
        module = {"wsgi": "trailer.wsgi", "asgi": "trailer.asgi:application"}[kind]
        found = [one for one in trailer.processes() if module in one.cmdline()]
        # gunicorn's workers have its command line, too.
        self.processes: list[psutil.Process] = found
        words = found[0].cmdline()
        port = words[words.index("-p") + 1] if "-p" in words else words[words.index("-b") + 1]
        self.url = f"http://127.0.0.1:{port.rpartition(':')[2]}"

    def cpu_seconds(self) -> float:
        times = [one.cpu_times() for one in self.processes]
        return sum(each.user + each.system for each in times)


def _rows(name: str, request: Request, servers: dict[str, Server]) -> list[Row]:
    """The two take turns. Processor time of the servers alone: PostgreSQL's is the same."""
    cost: dict[str, list[float]] = {kind: [] for kind in servers}
    times: dict[str, list[float]] = {kind: [] for kind in servers}
    for number in range(ROUNDS + 1):
        for kind, server in servers.items():
            before = server.cpu_seconds()
            taken = ask(server.url, request, SECONDS)
            if number > 0:  # the first is for caches and connections
                cost[kind].append((server.cpu_seconds() - before) / len(taken) * 1000)
                times[kind] += taken
    wsgi, asgi = median(cost["wsgi"]), median(cost["asgi"])
    detail = f"processor time of a request: WSGI {wsgi:.2f} ms, ASGI {asgi:.2f} ms"
    rows = [Row(f"{name}, ASGI", asgi / wsgi, "× WSGI", detail=detail)]
    if request.status == 304:
        share = AGENTS_PER_SECOND / (1000 / wsgi)
        rows.append(Row(f"{name}, WSGI: 200/s (1,000 agents)", share, "of a core", 1.0))
        p95 = percentile(times["wsgi"], 95) * 1000
        rows.append(Row(f"{name}, WSGI: p95 with 8 at once", p95, "ms", 100.0))
    return rows


def _list(trailer: RunningTrailer, user: User) -> Request:
    host = user.post("/hosts/", {"name": "listed"}, status=201)["id"]
    image = {"name": "busybox", "host": host, "kind": "pull", "reference": "busybox:1"}
    image_id = user.post("/images/", image, status=201)["id"]
    for number in range(WORKSPACES):
        body = {"name": f"w{number}", "host": host, "image": image_id, "env": {"N": str(number)}}
        user.post("/workspaces/", body, status=201)
    token = {"Authorization": f"Token {trailer.token()}"}
    return Request(f"/api/v1/workspaces/?page_size={WORKSPACES}", token)


def _page(trailer: RunningTrailer) -> Request:
    session = requests.Session()
    page = f"{trailer.url}/login/"
    session.get(page, timeout=30)
    form = {"username": USERNAME, "password": PASSWORD}
    token = {"csrfmiddlewaretoken": session.cookies["csrftoken"]}
    session.post(page, data=form | token, headers={"Referer": page}, timeout=30)
    cookies = "; ".join(f"{name}={text}" for name, text in session.cookies.items())
    return Request("/workspaces/", {"Cookie": cookies})
