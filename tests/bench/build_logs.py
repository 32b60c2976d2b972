"""Builds against the raw engine, and how fast their output reaches a WebSocket client."""

from __future__ import annotations

import io
import json
import time
from typing import TYPE_CHECKING, Any

import docker
import websockets.sync.client

from tests.bench.table import Row, percentile, ratio
from tests.e2e.scenario import User
from tests.ground.images import BUSYBOX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websockets.sync.client import ClientConnection

    from tests.ground.engine import PrivateEngine
    from tests.ground.server import RunningTrailer

# Seconds between two lines: no multiple of the agent's quarter of a second.
PAUSE = 0.137
LINE = "x" * 59
# The kernel's own clock, which containers share; it has hundredths of a second.
STAMPS = (
    "n=0; while [ $n -lt {count} ]; do n=$((n+1)); "
    "read up idle < /proc/uptime; echo at-$up-; usleep {pause}; done"
)


def build_rows(engine: PrivateEngine, trailer: RunningTrailer, *, quick: bool) -> list[Row]:
    user = User(trailer)
    user.online_host()
    bench = BuildBench(engine, trailer, user)
    try:
        return [
            bench.overhead(rounds=3 if quick else 10),
            *bench.latency(count=60 if quick else 300),
            *bench.flood(seconds=5 if quick else 20),
        ]
    finally:
        bench.close()


class BuildBench:
    def __init__(self, engine: PrivateEngine, trailer: RunningTrailer, user: User) -> None:
        self._api = docker.APIClient(base_url=engine.url, version="1.41")
        self._trailer = trailer
        self._user = user

    def close(self) -> None:
        self._api.close()

    # --- whole builds ---

    def overhead(self, rounds: int) -> Row:
        """From the request to the finished image, each round with steps that nobody has built."""
        ours, raw = [], []
        image = self._user.built_image("bench", self._dockerfile("warm-up"))
        self._user.wait_for_image(image, "finished")
        with self._socket("/ws/live/") as socket:
            socket.send(json.dumps({"subscribe": [f"image:{image['id']}"]}))
            for number in range(rounds):
                begun = time.monotonic()
                self._build_raw(self._dockerfile(f"raw-{number}"))
                raw.append(time.monotonic() - begun)
                begun = time.monotonic()
                body = {"dockerfile": self._dockerfile(f"ours-{number}")}
                self._user.patch(f"/images/{image['id']}/", body)
                self._hear_finished(socket)
                ours.append(time.monotonic() - begun)
        return ratio("build of 3 steps", ours, raw, 1.5)

    @staticmethod
    def _hear_finished(socket: ClientConnection) -> None:
        """As a page hears of it: asking every moment would itself slow the build down."""
        begun = False
        while True:
            status = json.loads(socket.recv(timeout=60)).get("status")
            begun = begun or status in ("pending", "building")
            assert status not in ("failed", "cancelled"), status
            if begun and status == "finished":
                return

    @staticmethod
    def _dockerfile(name: str) -> str:
        steps = "".join(f"RUN echo {name} step {number}\n" for number in (1, 2, 3))
        return f"FROM {BUSYBOX}\n{steps}"

    def _build_raw(self, dockerfile: str) -> None:
        answers = self._api.build(
            fileobj=io.BytesIO(dockerfile.encode()),
            tag="bench:raw",
            rm=True,
            forcerm=True,
            decode=True,
        )
        problems = [line["error"] for line in answers if "error" in line]
        assert not problems, problems

    # --- output ---

    def latency(self, count: int) -> list[Row]:
        command = STAMPS.format(count=count, pause=round(PAUSE * 1_000_000))
        times = []
        for arrived, text in self._follow(self._started("stamps", command)):
            times += [
                arrived - float(line.strip("at-"))
                for line in text.splitlines()
                if line.startswith("at-") and line.endswith("-")
            ]
        assert len(times) > count // 2, f"only {len(times)} of {count} lines were whole"
        detail = f"n={len(times)}"
        return [
            Row("log line → WebSocket, p50", percentile(times, 50) * 1000, "ms", 500, detail),
            Row("log line → WebSocket, p99", percentile(times, 99) * 1000, "ms", 1000, detail),
        ]

    def flood(self, seconds: float) -> list[Row]:
        """What one reader gets of a build that prints as fast as it can."""
        image = self._started("flood", f"yes {LINE}")
        lines = first = last = 0.0
        for arrived, text in self._follow(image):
            first = first or arrived
            lines, last = lines + text.count("\n"), arrived
            if last - first > seconds:
                break
        self._user.post(f"/images/{image['id']}/cancel/")
        self._user.wait_for_image(image, "cancelled")
        rate = lines / (last - first)
        return [Row("log lines seen by one reader", rate, "lines/s", None, f"{seconds:g} s")]

    def _started(self, name: str, command: str) -> Any:
        image = self._user.built_image(name, f"FROM {BUSYBOX}\nRUN {command}\n")
        return self._user.get(f"/images/{image['id']}/")

    def _follow(self, image: Any) -> Iterator[tuple[float, str]]:
        """(arrival, text) of each frame until the log is complete."""
        with self._socket(f"/ws/builds/{image['current_build']}/log/") as socket:
            while True:
                frame = json.loads(socket.recv(timeout=60))
                if frame.get("complete"):
                    return
                yield time.clock_gettime(time.CLOCK_BOOTTIME), frame["text"]

    def _socket(self, path: str) -> ClientConnection:
        return websockets.sync.client.connect(
            self._trailer.url.replace("http", "ws") + path,
            additional_headers={"Authorization": f"Token {self._trailer.token()}"},
            max_size=None,
        )
