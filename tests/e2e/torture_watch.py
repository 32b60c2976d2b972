"""What the API says during a storm: never 500, and never a fresh status that cannot be one."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.torture_parts import Part
    from tests.e2e.torture_writer import Api

HEARTBEAT = 2
# From the engine's end to the last status that is called fresh.
ENGINE_SILENCE = 5.0
AGENT_SILENCE = 3.0 * HEARTBEAT
# A question and its answer cross the second.
_ROUNDING = 0.5
_PERIOD = 0.3
# A heartbeat that waited for server or database is heard when these are back.
_IN_FLIGHT = 4.0
# A request to parts that have been up for so long is answered.
_ANSWERS_AFTER = 20.0


class StormWatch:
    """Asks several times a second. `checked` counts the looks at which each rule could be
    judged: a storm without any proves nothing."""

    def __init__(
        self, api: Api, host_id: str, parts: dict[str, Part], problems: list[str]
    ) -> None:
        self._api, self._host_id, self._parts, self._problems = api, host_id, parts, problems
        self.answered = api.answered
        # Since when heartbeats come through all of it, as the server itself tells.
        self._heard_since: float | None = None
        self.checked = {"engine": 0, "agent": 0}
        self.latest = {"engine": 0.0, "agent": 0.0}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            self.look()

    def look(self) -> None:
        begun = time.monotonic()
        before = {name: part.up_since for name, part in self._parts.items()}
        host = self._api.call("GET", f"/hosts/{self._host_id}/")
        workspaces = self._api.call("GET", "/workspaces/?page_size=200")
        after = {name: part.up_since for name, part in self._parts.items()}
        if host is None or workspaces is None:
            self._unanswered(begun, before, after)
            return
        for reply in (host, workspaces):
            if reply.status_code != 200:
                self._problems.append(f"{reply.url}: {reply.status_code} {reply.text[:300]}")
                return
        fresh = [host.json()["fresh"], *[row["fresh"] for row in workspaces.json()["results"]]]
        rows = workspaces.json()["results"]
        self._hear(host.json(), after)
        self._judge(begun, before, after, rows, any(fresh[1:]))

    def _unanswered(self, begun: float, before: Any, after: Any) -> None:
        for name in ("server", "database"):
            up = before[name]
            if up is None or up != after[name] or begun - up < _ANSWERS_AFTER:
                return
        self._problems.append("the API did not answer although server and database were up")

    def _hear(self, host: dict[str, Any], up: dict[str, float | None]) -> None:
        chain = [up[name] for name in ("agent", "server", "database")]
        if None in chain or host["last_heartbeat"] is None:
            self._heard_since = None
            return
        age = time.time() - datetime.fromisoformat(host["last_heartbeat"]).timestamp()
        heard_at = time.monotonic() - age
        if heard_at < max(at for at in chain if at is not None):
            self._heard_since = None
        elif self._heard_since is None:
            self._heard_since = heard_at

    def _judge(
        self, begun: float, before: Any, after: Any, rows: list[Any], any_fresh: bool
    ) -> None:
        """Only by what was so before the question and after the answer."""
        if not rows or before != after:
            return
        served = [after["server"], after["database"]]
        if None in served:
            return
        engine_down, agent_down = self._parts["engine"].down_since, self._parts["agent"].down_since
        heard = self._heard_since
        if agent_down is not None:
            waited = max(served) + _IN_FLIGHT
            limit = max(agent_down, waited) + AGENT_SILENCE + _ROUNDING
            self._verdict("agent", begun, limit, agent_down, any_fresh, rows)
        elif engine_down is not None and heard is not None:
            limit = max(engine_down, heard) + ENGINE_SILENCE
            self._verdict("engine", begun, limit, engine_down, any_fresh, rows)

    def _verdict(
        self, part: str, begun: float, limit: float, down: float, any_fresh: bool, rows: Any
    ) -> None:
        if any_fresh:
            self.latest[part] = max(self.latest[part], begun - (limit - 5.0))
        if begun < limit:
            return
        self.checked[part] += 1
        if any_fresh:
            told = [(row["name"], row["status"]) for row in rows if row["fresh"]]
            self._problems.append(
                f"{begun - down:.1f} s after the {part} went away these are fresh: {told}"
            )
