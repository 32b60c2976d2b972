"""URLs through the server against a direct connection to the same program, taking turns."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.bench.table import Row, percentile
from tests.e2e.scenario import User
from tests.e2e.url_scene import Visitor, serving
from tests.ground.url_image import APP_PORT, ensure_app
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.ground.engine import PrivateEngine
    from tests.ground.server import RunningTrailer

_HOST_PORT = 18080


def relay_rows(engine: PrivateEngine, trailer: RunningTrailer, *, quick: bool) -> list[Row]:
    with closing(engine.client()) as client:
        ensure_app(client)
    serving(
        User(trailer),
        "relayed",
        {"subdomain": "relayed"},
        command=["python3", "/url_app.py", str(APP_PORT), "0.0.0.0"],
        ports=[{"container_port": APP_PORT, "host_port": _HOST_PORT}],
    )
    visitor = Visitor(trailer)
    eventually(lambda: visitor.get("relayed").ok, 20, "the application does not answer")
    there = f"http://{engine.address}:{_HOST_PORT}"

    def direct(path: str, **options: Any) -> Any:
        return visitor.session.get(there + path, timeout=120, **options)

    def relayed(path: str, **options: Any) -> Any:
        return visitor.get("relayed", path, **options)

    return [*_latency(direct, relayed, 100 if quick else 500), *_bytes(direct, relayed, quick)]


def _latency(direct: Callable[..., Any], relayed: Callable[..., Any], rounds: int) -> list[Row]:
    taken: dict[str, list[float]] = {"direct": [], "relayed": []}
    for _ in range(rounds):
        for name, get in (("direct", direct), ("relayed", relayed)):
            begun = time.perf_counter()
            assert get("/").status_code == 200
            taken[name].append(time.perf_counter() - begun)
    added = percentile(taken["relayed"], 50) - percentile(taken["direct"], 50)
    shown = ", ".join(
        f"{name} p50 {1000 * percentile(t, 50):.1f} p95 {1000 * percentile(t, 95):.1f} ms"
        for name, t in taken.items()
    )
    return [
        Row("URL through the server: added to a request, p50", 1000 * added, "ms", detail=shown)
    ]


def _bytes(direct: Callable[..., Any], relayed: Callable[..., Any], quick: bool) -> list[Row]:
    megabytes, speeds = 50 if quick else 200, {"direct": 0.0, "relayed": 0.0}
    for _ in range(2):
        for name, get in (("direct", direct), ("relayed", relayed)):
            begun = time.perf_counter()
            with get(f"/download?{megabytes}", stream=True) as reply:
                size = sum(len(data) for data in reply.iter_content(256 * 1024))
            speeds[name] = max(speeds[name], size / (time.perf_counter() - begun) / 1e6)
    detail = f"direct {speeds['direct']:.0f} MB/s, {megabytes} MiB, better of two"
    return [Row("URL through the server: download", speeds["relayed"], "MB/s", detail=detail)]
