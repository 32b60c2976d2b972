"""The whole product against the raw engine, seen from outside: deploy, change, drift."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import requests

from tests.bench.raw import THREADS, RawEngine
from tests.bench.table import Row, percentile, ratio
from tests.e2e.scenario import User
from tests.ground.images import RUN_UNTIL_STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.ground.server import RunningTrailer

HEAL_WITHIN = 2.0


class ProductBench:
    """Rounds alternate between raw and ours, so that a busy machine is unfair to both alike."""

    def __init__(self, trailer: RunningTrailer, raw: RawEngine) -> None:
        self.user = User(trailer)
        self.raw = raw
        self._trailer = trailer
        self._host = self.user.online_host()["id"]
        self._image = self.user.image()["id"]
        self._network = self.user.post(
            "/networks/", {"name": "lan", "host": self._host}, status=201
        )["id"]
        warm = self._post_one("warm-up", {})
        self.user.wait_for(warm, "running")
        self.remove_all([warm])

    # --- the user's side ---

    def post_all(self, names: list[str], **fields: Any) -> list[Any]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda name: self._post_one(name, fields), names))

    def _post_one(self, name: str, fields: dict[str, Any]) -> Any:
        """With a connection of its own: the user's session is not made for threads."""
        body = {
            "name": name,
            "host": self._host,
            "image": self._image,
            "command": RUN_UNTIL_STOPPED,
            "drain_timeout": 2,
            **fields,
        }
        reply = requests.post(
            f"{self._trailer.url}/api/v1/workspaces/",
            json=body,
            headers={"Authorization": f"Token {self._trailer.token()}"},
            timeout=60,
        )
        assert reply.status_code == 201, reply.text
        return reply.json()

    def remove_all(self, workspaces: list[Any]) -> None:
        for workspace in workspaces:
            self.user.delete(f"/workspaces/{workspace['id']}/")
        names = {f"trailer-{workspace['name']}" for workspace in workspaces}
        self.raw.wait(lambda: not names & set(self.raw.every_name()))

    # --- deploy ---

    def deploy(self, count: int, rounds: int, goal: float) -> Row:
        ours, raw = [], []
        for number in range(rounds):
            names = [f"d{number}-{index}" for index in range(count)]
            raw.append(self._deploy_raw(names))
            ours.append(self._deploy_ours(names))
        return ratio(f"deploy {count}", ours, raw, goal)

    def _deploy_raw(self, names: list[str]) -> float:
        begun = time.monotonic()
        self.raw.each(names, self.raw.deploy)
        self.raw.wait_for_starts(set(names))
        seconds = time.monotonic() - begun
        self.raw.each(names, self.raw.remove)
        return seconds

    def _deploy_ours(self, names: list[str]) -> float:
        wanted = {f"trailer-{name}" for name in names}
        begun = time.monotonic()
        made = self.post_all(names)
        self.raw.wait_for_starts(wanted)
        seconds = time.monotonic() - begun
        for workspace in made:
            self.user.wait_for(workspace, "running", timeout=60)
        self.remove_all(made)
        return seconds

    # --- one workspace among others ---

    def change(self, workspace: Any, rounds: int) -> Row:
        """One variable changes; over when the new container runs."""
        ours, raw = [], []
        name = f"trailer-{workspace['name']}"
        self.raw.deploy("raw-change", N="0")
        for number in range(1, rounds + 1):
            by_script = partial(self.raw.replace, "raw-change", N=str(number))
            raw.append(self._until_other("raw-change", by_script))
            path, body = f"/workspaces/{workspace['id']}/", {"env": {"N": str(number)}}
            ours.append(self._until_other(name, partial(self.user.patch, path, body)))
            self.user.wait_for(workspace, "running")
        self.raw.remove("raw-change")
        return ratio("one variable changed → new one runs", ours, raw, 1.5)

    def drift(self, workspace: Any, rounds: int) -> list[Row]:
        """Removed, killed, stopped or cut off by hand; over when it is as it should be."""
        self.raw.deploy("raw-drift")
        rows = []
        for title, hand, repair in (
            ("removed by hand → back", self.raw.remove, self.raw.deploy),
            ("killed → back", self.raw.kill, self.raw.start),
            ("stopped by hand → back", self.raw.stop, self.raw.start),
        ):
            ours, raw = [], []
            for _ in range(rounds):
                raw.append(self._drift_raw(hand, repair))
                ours.append(self._drift_ours(workspace, hand))
            rows.append(ratio(title, ours, raw, 2.0))
            rows.append(Row(f"{title}, p95", percentile(ours, 95), "s", HEAL_WITHIN))
        self.raw.remove("raw-drift")
        return [*rows, *self._cut_off(workspace, rounds)]

    def _drift_raw(self, hand: Callable[[str], object], repair: Callable[[str], object]) -> float:
        begun = time.monotonic()
        hand("raw-drift")
        repair("raw-drift")
        self.raw.wait(lambda: "raw-drift" in self.raw.running())
        return time.monotonic() - begun

    def _drift_ours(self, workspace: Any, hand: Callable[[str], object]) -> float:
        name = f"trailer-{workspace['name']}"
        begun = time.monotonic()
        hand(name)
        self.raw.wait(lambda: name in self.raw.running())
        seconds = time.monotonic() - begun
        self.user.wait_for(workspace, "running")
        return seconds

    def _cut_off(self, workspace: Any, rounds: int) -> list[Row]:
        name, network = f"trailer-{workspace['name']}", "trailer-lan"
        self.user.patch(f"/workspaces/{workspace['id']}/", {"networks": [self._network]})
        self.raw.wait(lambda: self._is_on(name, network))
        self.user.wait_for(workspace, "running")
        self.raw.deploy("raw-cut")
        self.raw.join("raw-cut", network)
        ours, raw = [], []
        for _ in range(rounds):
            raw.append(self._cut("raw-cut", network, lambda: self.raw.join("raw-cut", network)))
            ours.append(self._cut(name, network, lambda: None))
            self.user.wait_for(workspace, "running")
        self.raw.remove("raw-cut")
        title = "network cut by hand → joined"
        return [
            ratio(title, ours, raw, 2.0),
            Row(f"{title}, p95", percentile(ours, 95), "s", HEAL_WITHIN),
        ]

    def _cut(self, name: str, network: str, repair: Callable[[], object]) -> float:
        begun = time.monotonic()
        self.raw.cut(name, network)
        repair()
        self.raw.wait(lambda: self._is_on(name, network))
        return time.monotonic() - begun

    def _is_on(self, name: str, network: str) -> bool:
        return network in self.raw.inspect(name)["NetworkSettings"]["Networks"]

    def _until_other(self, name: str, act: Callable[[], object]) -> float:
        """Seconds until another container runs under the name."""
        before = self.raw.running()[name]
        begun = time.monotonic()
        act()
        self.raw.wait(lambda: self.raw.running().get(name, before) != before)
        return time.monotonic() - begun
