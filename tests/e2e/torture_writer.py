"""A writer that edits workspaces through a storm and knows what may have become of each.

An answer settles what a workspace is; a request without one, or with 503, may have been done.
Every edit names the revision that it was made for, so one that a frozen server carries out late
is either the newest or refused.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import requests

from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED

if TYPE_CHECKING:
    from random import Random

_TIMEOUT = 8.0
FIELDS = ("name", "desired_state", "env", "memory_bytes", "networks")
_MEMORY = (32 << 20, 48 << 20, 64 << 20)
HEALTH = {"test": ["CMD", "true"], "interval": 1, "timeout": 5, "retries": 5, "start_period": 0}


class Api:
    """Requests of one thread, with everything that must never be answered."""

    def __init__(self, url: str, token: str, problems: list[str]) -> None:
        self.answered: Counter[int] = Counter()
        self._url = f"{url}/api/v1"
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Token {token}"
        self._problems = problems

    def call(self, method: str, path: str, **given: Any) -> requests.Response | None:
        """None without an answer; nor is 503 one."""
        try:
            reply = self._session.request(method, self._url + path, timeout=_TIMEOUT, **given)
        except requests.RequestException:
            self.answered[0] += 1
            return None
        self.answered[reply.status_code] += 1
        if reply.status_code == 503:
            return None
        if reply.status_code >= 500:
            self._problems.append(f"{method} {path}: {reply.status_code} {reply.text[:500]}")
            return None
        return reply


@dataclass
class Known:
    """`state` is the last that was acknowledged, None before its creation was; `maybe` are the
    states that it may have instead, where None is that it is gone."""

    name: str
    body: dict[str, Any]
    id: str = ""
    revision: int = 0
    state: dict[str, Any] | None = None
    maybe: list[dict[str, Any] | None] = field(default_factory=list)
    deleted: bool = False

    def settle(self, body: dict[str, Any]) -> None:
        """Whatever was asked for at an earlier revision is refused from here on."""
        if self.state is None or body["revision"] > self.revision:
            self.maybe = []
        self.id, self.revision, self.state = body["id"], body["revision"], shown(body)

    def allows(self, state: dict[str, Any] | None) -> bool:
        return state in [None if self.deleted else self.state, *self.maybe]


def dockerfile(text: str) -> str:
    """Of an image whose build takes a moment."""
    return f"FROM {BUSYBOX}\nRUN sleep 1; echo {text} > /stamp\n"


def shown(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in FIELDS}


class StormWriter:
    """One thread on workspaces of its own; `extra` are further fields of some of them."""

    def __init__(
        self,
        api: Api,
        random: Random,
        problems: list[str],
        *,
        prefix: str,
        base: dict[str, Any],
        network: str,
        volumes: list[str],
        built: str,
        most: int,
    ) -> None:
        self._api, self._random, self._problems = api, random, problems
        self._prefix, self._base, self._network = prefix, base, network
        self._volumes, self._built, self._most = volumes, built, most
        self._number = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.known: list[Known] = []
        self.done: Counter[str] = Counter()
        self.log: list[str] = []

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(0.05, 0.5)):
            self.step()

    # --- one move ---

    def step(self) -> None:
        alive = [one for one in self.known if one.id and not one.deleted]
        if len(alive) < 2 or (len(alive) < self._most and self._random.random() < 0.25):
            self.create()
            return
        if self._random.random() < 0.08:
            self.build()
            return
        moves = {
            "mark": 30,
            "memory": 8,
            "stop": 12,
            "start": 14,
            "redeploy": 12,
            "network": 8,
            "rename": 6,
            "delete": 8,
        }
        (move,) = self._random.choices(list(moves), list(moves.values()))
        self._move(move, self._random.choice(alive))

    def create(self) -> None:
        self._number += 1
        name = f"{self._prefix}-{self._number}"
        body = {**self._base, "name": name, "command": RUN_UNTIL_STOPPED, "drain_timeout": 2}
        body["env"] = {"MARK": "0"}
        kind = self._number % 4
        if kind == 1:
            body["health_check"] = HEALTH
        if kind == 2:
            volume = self._random.choice(self._volumes)
            body["mounts"] = [{"volume": volume, "target": "/data", "read_only": False}]
        if kind == 3:
            body["image"] = self._built
        known = Known(name, body)
        self.known.append(known)
        reply = self._api.call("POST", "/workspaces/", json=body)
        self._said("create", known, reply)
        if reply is None:
            # Its name is used once only: when it exists, this made it.
            known.maybe = [self._fresh(body)]
        elif reply.status_code == 201:
            known.settle(reply.json())
        else:
            self._problems.append(f"create {name}: {reply.status_code} {reply.text[:300]}")

    def build(self) -> None:
        """Another image, and with it every workspace that is made from it."""
        body = {"dockerfile": dockerfile(str(time.time_ns()))}
        reply = self._api.call("PATCH", f"/images/{self._built}/", json=body)
        self.done[f"build {reply.status_code if reply is not None else 0}"] += 1

    def _fresh(self, body: dict[str, Any]) -> dict[str, Any]:
        defaults: dict[str, Any] = {
            "desired_state": "running",
            "memory_bytes": None,
            "networks": [],
        }
        return {name: body.get(name, defaults.get(name)) for name in FIELDS}

    def _move(self, move: str, known: Known) -> None:
        assert known.state is not None
        path = f"/workspaces/{known.id}/"
        headers = {"If-Match": str(known.revision)}
        change = self._change(move, known)
        if move == "delete":
            reply = self._api.call("DELETE", path, headers=headers)
        elif move in {"start", "stop", "redeploy"}:
            reply = self._api.call("POST", f"{path}{move}/", json={}, headers=headers)
        else:
            reply = self._api.call("PATCH", path, json=change, headers=headers)
        self._said(move, known, reply)
        if reply is None:
            known.maybe.append(None if move == "delete" else {**known.state, **change})
        elif reply.status_code in {200, 202}:
            wanted = {**known.state, **change}
            if shown(reply.json()) != wanted:
                self._problems.append(f"{move} {known.name}: {shown(reply.json())}, not {wanted}")
            known.settle(reply.json())
        elif reply.status_code == 204:
            known.deleted, known.maybe = True, []
        else:
            self._look(move, known, reply)

    def _change(self, move: str, known: Known) -> dict[str, Any]:
        assert known.state is not None
        self._number += move == "rename"
        changes: dict[str, dict[str, Any]] = {
            "mark": {"env": {"MARK": f"{time.time_ns()}"}},
            "memory": {"memory_bytes": self._random.choice(_MEMORY)},
            "network": {"networks": [] if known.state["networks"] else [self._network]},
            "rename": {"name": f"{self._prefix}-{self._number}"},
            "start": {"desired_state": "running"},
            # It starts a stopped one.
            "redeploy": {"desired_state": "running"},
            "stop": {"desired_state": "stopped"},
            "delete": {},
        }
        return changes[move]

    def _look(self, move: str, known: Known, refused: requests.Response) -> None:
        """Refused: something else was done before, which only an unanswered request may be."""
        reply = self._api.call("GET", f"/workspaces/{known.id}/")
        if reply is None:
            return
        state = None if reply.status_code == 404 else shown(reply.json())
        if not known.allows(state):
            self._problems.append(
                f"{move} {known.name} was refused with {refused.status_code} "
                f"{refused.text[:300]}; it is {state}, not {known.state} nor any of {known.maybe}"
            )
        if state is None:
            known.deleted, known.maybe = True, []
        elif refused.status_code == 409 and not known.maybe:
            known.settle(reply.json())
            self._problems.append(
                f"{move} {known.name}: {refused.status_code} {refused.text[:300]} with nothing "
                "that could have been before it"
            )
        else:
            known.settle(reply.json())

    def _said(self, move: str, known: Known, reply: requests.Response | None) -> None:
        status = reply.status_code if reply is not None else 0
        self.done[f"{move} {status}"] += 1
        self.log.append(f"{time.time():.3f} {move} {known.name} {status}")
