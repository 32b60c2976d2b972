"""Ground for storms: a running Trailer on PostgreSQL with an agent of its own, foreign objects,
a writer, a watch, a witness of the engine's events, and faults drawn from a seed."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.e2e import torture_oracle as oracle
from tests.e2e.scenario import User
from tests.e2e.torture_parts import AgentPart, DatabasePart, EnginePart, Part, ServerPart
from tests.e2e.torture_watch import HEARTBEAT, StormWatch
from tests.e2e.torture_witness import Witness
from tests.e2e.torture_writer import Api, StormWriter, dockerfile
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED, ensure_images
from tests.ground.postgres import PrivatePostgres
from tests.ground.server import ROOT
from tests.ground.standalone import StandaloneTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from tests.ground.engine import PrivateEngine

# Of each part: seconds up and seconds down, from and to. Every storm is long enough for all of
# them to go away once.
PACE = {
    "engine": ((6.0, 14.0), (0.5, 9.0)),
    "agent": ((3.0, 12.0), (0.2, 10.0)),
    "server": ((5.0, 14.0), (0.2, 6.0)),
    "database": ((5.0, 14.0), (0.2, 5.0)),
}
# Of engine or agent: the API has to say so.
LONG_ABSENCE = (8.0, 11.0)
# Everything is up again: then it may take so long until the host is as it should be.
SETTLE = 90.0
ARTIFACTS = ROOT / "tests/artifacts"
_KEPT = ("keep-a", "keep-b")
_DOOMED = "doomed"
_MARKER = "marker"


class TortureScene:
    def __init__(self, engine: PrivateEngine, seed: int) -> None:
        self.engine, self.seed = engine, seed
        self.random = Random(seed)
        self.problems: list[str] = []
        self.log: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="trailer-test-torture-"))
        self._postgres = PrivatePostgres()
        self.trailer = StandaloneTrailer(engine.url, database_url=self._postgres.url)
        self.parts: dict[str, Part] = {}
        self._rounds = 0

    # --- set-up ---

    def open(self) -> TortureScene:
        self._postgres.start()
        server = ServerPart(self.trailer)
        self.parts = {"server": server, "database": DatabasePart(self._postgres)}
        server.revive()
        eventually(self._serves, 120, "the server does not serve")
        self.user = User(self.trailer)
        body = {"name": "storm", "heartbeat_interval": HEARTBEAT, "reconcile_interval": 1}
        self.host_id = self.user.post("/hosts/", body, status=201)["id"]
        path = f"/hosts/{self.host_id}/"
        token = self.user.post(f"{path}enrolment/", status=201)["token"]
        agent = AgentPart(self._folder, self.trailer.url, self.engine, token)
        self.parts |= {"engine": EnginePart(self.engine), "agent": agent}
        agent.revive()
        self._make_foreign_world()
        eventually(lambda: self.user.get(path)["status"] == "online", 60, "no agent")
        self._make_ground()
        self.witness = Witness(self.engine.socket).start()
        self.writer = self._new_writer()
        self.watch = StormWatch(self._api(), self.host_id, self.parts, self.problems)
        return self

    def close(self, *, failed: bool) -> None:
        if hasattr(self, "witness"):
            self.witness.stop()
        for name in ("agent", "server"):
            part = self.parts.get(name)
            if isinstance(part, AgentPart | ServerPart):
                part.stop()
        if failed:
            self._keep_logs()
        self.engine.thaw()
        self.trailer.session.close()
        shutil.rmtree(self.trailer.folder, ignore_errors=True)
        self._postgres.destroy()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serves(self) -> bool:
        self.parts["server"].tend()
        return self.trailer.api_is_up()

    def _api(self) -> Api:
        return Api(self.trailer.url, self.trailer.token(), self.problems)

    def _make_foreign_world(self) -> None:
        """A container that runs until its engine dies, and one that never ran."""
        with closing(self.engine.client()) as client:
            ensure_images(client)
            client.volumes.create("foreign")
            given: dict[str, Any] = {
                "volumes": {"foreign": {"bind": "/data"}},
                "labels": {"trailer.managed": "true", "trailer.workspace": "w-impostor"},
            }
            client.containers.run(BUSYBOX, RUN_UNTIL_STOPPED, name="foreign", detach=True, **given)
            client.containers.create(BUSYBOX, RUN_UNTIL_STOPPED, name="trailer-rest", **given)
            self._foreign = self._inspect_foreign_world(client)

    def _make_ground(self) -> None:
        """Image, network and volumes; a marker in each volume says whose data it has."""
        user, host = self.user, self.host_id
        pull = {"name": "busybox", "host": host, "kind": "pull", "reference": BUSYBOX}
        self._image = user.post("/images/", pull, status=201)["id"]
        build = {"name": "built", "host": host, "kind": "build", "dockerfile": dockerfile("0")}
        self._built = user.post("/images/", build, status=201)["id"]
        body = {"name": "lab", "host": host}
        self._network = user.post("/networks/", body, status=201)["id"]
        self._volumes = {
            name: user.post("/volumes/", {"name": name, "host": host}, status=201)["id"]
            for name in (*_KEPT, _DOOMED)
        }
        paths = [f"/volumes/{volume}/" for volume in self._volumes.values()]
        paths.append(f"/networks/{self._network}/")

        def made() -> bool:
            return all(user.get(path)["status"] == "created" for path in paths)

        eventually(made, 30, "network and volumes are not made")
        user.wait_for_image({"id": self._built, "name": "built"}, "finished")
        for name in self._volumes:
            self._marker(name).write_text(name)

    def _marker(self, volume: str) -> Path:
        return self.engine.data_root / "volumes" / f"trailer-{volume}" / "_data" / _MARKER

    def _new_writer(self) -> StormWriter:
        return StormWriter(
            self._api(),
            Random(self.seed + 1),
            self.problems,
            prefix="w",
            base={"host": self.host_id, "image": self._image},
            network=self._network,
            volumes=[self._volumes[name] for name in _KEPT],
            built=self._built,
            most=6,
        )

    # --- a storm ---

    def storm(self, seconds: float) -> None:
        """Every part goes down and comes back at times of its own; at the end all are up."""
        self._rounds += 1
        self.writer.start()
        self.watch.start()
        ends = time.monotonic() + seconds
        turns = {name: time.monotonic() + self._draw(name, up=True) for name in self.parts}
        self._open_with_a_long_absence(turns)
        while time.monotonic() < ends:
            for name, at in turns.items():
                if time.monotonic() >= at:
                    turns[name] = self._turn(name)
                self.parts[name].tend()
            if self._rounds == 1 and _DOOMED in self._volumes:
                self._doom()
            time.sleep(0.05)
        # A server cannot begin without its database.
        for name in ("database", "engine", "server", "agent"):
            if self.parts[name].down_since is not None:
                self.parts[name].revive()
                self._note(f"{name} is back")
        self.writer.stop()

    def _open_with_a_long_absence(self, turns: dict[str, float]) -> None:
        """Of one part alone: afterwards the others are rarely up for long enough to judge by."""
        first = self.random.choice(["engine", "agent"])
        self._turn(first)
        absence = self.random.uniform(*LONG_ABSENCE)
        turns[first] = time.monotonic() + absence
        for name in turns.keys() - {first}:
            turns[name] += absence

    def _turn(self, name: str) -> float:
        part = self.parts[name]
        if part.down_since is not None:
            part.revive()
            self._note(f"{name} is back")
            return time.monotonic() + self._draw(name, up=True)
        kills = self.random.random() < 0.5
        self._note(f"{name} is {'killed' if kills else 'frozen'}")
        (part.kill if kills else part.freeze)()
        return time.monotonic() + self._draw(name, up=False)

    def _draw(self, name: str, *, up: bool) -> float:
        long = not up and name in {"engine", "agent"} and self.random.random() < 1 / 3
        return self.random.uniform(*(LONG_ABSENCE if long else PACE[name][0 if up else 1]))

    def _doom(self) -> None:
        """The one volume that its owner deletes."""
        path = f"/volumes/{self._volumes[_DOOMED]}/?confirm={_DOOMED}"
        api = self._api()
        reply = api.call("DELETE", path)
        if reply is not None and reply.status_code in {204, 404}:
            del self._volumes[_DOOMED]

    def _note(self, text: str) -> None:
        self.log.append(f"{time.time():.3f} {text}")

    # --- afterwards ---

    def settled(self) -> None:
        """Bounded: nothing stuck, nothing lost, nothing left over, nobody else harmed."""
        begun = time.monotonic()
        try:
            eventually(self._is_settled, SETTLE, "the host did not settle", interval=0.5)
        finally:
            self.watch.stop()
            self._note(f"settled after {time.monotonic() - begun:.1f} s")
        eventually(self._story_is_whole, 20, "the story is not whole", interval=0.5)
        self._nobody_else_suffered()
        assert self.problems == [], "\n".join(self.problems)

    def _is_settled(self) -> bool:
        for part in self.parts.values():
            part.tend()
        if not self.trailer.api_is_up():
            return False
        rows = oracle.rows_of(self.user, "/workspaces/")
        with closing(self.engine.client()) as client:
            wrong = [
                *oracle.lost_writes(self.writer.known, rows),
                *oracle.unsettled(rows),
                *oracle.open_builds(oracle.rows_of(self.user, f"/images/{self._built}/builds/")),
                *oracle.wrong_containers(client, rows),
            ]
        assert wrong == [], "\n".join(wrong)
        return True

    def _story_is_whole(self) -> bool:
        """Reports have a loop of their own, behind the work."""
        told, events = oracle.ledger(self._postgres.url), self.witness.told
        ids = {row["id"] for row in oracle.rows_of(self.user, "/workspaces/")}
        wrong = [
            *oracle.doubled(told),
            *oracle.untold(events, told, ids),
            *oracle.blamed(told, engine_died=self.parts["engine"].kills > 0),
        ]
        assert wrong == [], "\n".join(wrong)
        return True

    def _inspect_foreign_world(self, client: Any) -> dict[str, Any]:
        seen = {name: client.api.inspect_container(name) for name in oracle.FOREIGN}
        return {
            name: (one["Id"], one["Name"], one["State"]["StartedAt"], one["RestartCount"])
            for name, one in seen.items()
        } | {"volume": client.api.inspect_volume("foreign")["CreatedAt"]}

    def _nobody_else_suffered(self) -> None:
        with closing(self.engine.client()) as client:
            assert self._inspect_foreign_world(client) == self._foreign
        ids = {value[0] for value in self._foreign.values()}
        engine = self.parts["engine"]
        assert isinstance(engine, EnginePart)
        done = [
            one
            for one in self.witness.told
            if one.id in ids
            and one.action != "die"
            and not any(begun <= one.at <= ended for begun, ended in engine.starts)
        ]
        assert done == [], f"foreign containers were touched: {done}"
        for name in _KEPT:
            assert self._marker(name).read_text() == name
        volumes = [f"trailer-{name}" for name in (*_KEPT, "foreign")]
        removed = [one for one in self.witness.told if one.action == "destroy"]
        assert not [one for one in removed if one.kind == "volume" and one.id in volumes]
        if _DOOMED not in self._volumes:
            eventually(
                lambda: not self._marker(_DOOMED).exists(), 30, "a deleted volume is still there"
            )

    # --- for whoever reads about it ---

    def said(self) -> str:
        """The figures of all storms so far."""
        faults = ", ".join(
            f"{name} {part.kills} killed {part.freezes} frozen"
            for name, part in self.parts.items()
        )
        latest = {name: round(at, 1) for name, at in self.watch.latest.items()}
        return (
            f"seed {self.seed}: {self._rounds} storms; {faults}; "
            f"{sum(self.writer.done.values())} edits {dict(sorted(self.writer.done.items()))}; "
            f"looks {dict(self.watch.answered)}, judged {self.watch.checked}, latest fresh at "
            f"{latest}; {len(self.witness.told)} engine events, {self.log[-1]}"
        )

    def _keep_logs(self) -> None:
        folder = ARTIFACTS / f"torture-{self.seed}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("agent", "server"):
            part = self.parts.get(name)
            if isinstance(part, AgentPart | ServerPart) and part.log.exists():
                shutil.copy(part.log, folder / f"{name}.log")
        shutil.copy(self.engine.folder / "log", folder / "engine.log")
        lines = [*self.log, *getattr(self, "writer", self).log]
        (folder / "storm.log").write_text("\n".join(sorted(set(lines))))
        if hasattr(self, "witness"):
            text = "\n".join(str(one) for one in self.witness.told)
            (folder / "events.log").write_text(text)
        state = self._folder / "agent" / "agent.sqlite3"
        if state.exists():
            shutil.copy(state, folder / "agent.sqlite3")
