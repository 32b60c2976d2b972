"""Ground for killing an agent at every call: a foreign world, an oracle, one kill at a time."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

from docker.errors import NotFound

from agent.protocol import naming
from agent.protocol.report import WorkspaceEvent
from tests.engine.agent_forks import AgentForks, ForkedAgent
from tests.engine.desired_host import DesiredHost
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import docker

    from agent.protocol.state import DesiredWorkspace
    from tests.ground.faults import Call, Moment
    from tests.ground.proxy import DockerApiProxy

QUIET = 0.2
IMPOSTOR = "trailer-impostor"


class KillScene:
    """One host with a bystander, foreign objects, and an agent that dies and comes back."""

    def __init__(
        self, proxy: DockerApiProxy, client: docker.DockerClient, state_dir: Path
    ) -> None:
        self.host = DesiredHost()
        self.proxy = proxy
        self.client = client
        self.reached: set[tuple[str, Moment]] = set()
        self.kills = 0
        self.cycles_needed: list[int] = []
        self._state_dir = state_dir
        self._forks = AgentForks()

    def open(self) -> Self:
        """Everybody is there and the agent rests."""
        for image in self.client.images.list("trailer/*"):
            self.client.images.remove(str(image.id), force=True)
        self._make_foreign_world()
        self.agent = self._start()
        self.host.workspace("bystander")
        self.settle()
        self._foreign = self._inspect_foreign_world()
        self._bystander = self._life("trailer-bystander")
        return self

    def close(self) -> None:
        self._forks.close()
        self.host.close()

    # --- the agent ---

    def _start(self) -> ForkedAgent:
        return self._forks.start(self.host, self.proxy.url, self._state_dir)

    def cycles_begun(self) -> int:
        """From the journal of a dead agent."""
        with closing(sqlite3.connect(self._state_dir / "agent.sqlite3")) as database:
            row = database.execute("SELECT value FROM meta WHERE key = 'cycle'").fetchone()
        return int(row[0]) if row else 0

    def settle(self, timeout: float = 40.0) -> None:
        """The host is as the document says, and the agent has gone quiet."""
        self.agent.look_again()
        rests = self._when_quiet(self._is_converged)
        self._wait_until(rests, timeout, "not converged")

    def _wait_until(self, predicate: Callable[[], object], timeout: float, message: str) -> None:
        """With the end of the agent's log in the failure, as it is then."""
        try:
            eventually(predicate, timeout, message, interval=0.03)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{self.agent.log[-3000:]}") from problem

    def _when_quiet(self, predicate: Callable[[], bool]) -> Callable[[], bool]:
        """Asks only when no call was made for a while: an agent at rest makes none, and to ask the
        engine while one is at work would slow both down."""
        last, since = len(self.proxy.calls), time.monotonic()

        def asked() -> bool:
            nonlocal last, since
            now = len(self.proxy.calls)
            if now != last:
                last, since = now, time.monotonic()
            return time.monotonic() - since >= QUIET and predicate()

        return asked

    # --- one kill ---

    def kill_at(
        self, number: int, moment: Moment, edit: Callable[[], object], only: str = ""
    ) -> bool:
        """Edit, kill the agent at its n-th change, bring it back, and look at everything.

        False when the edit needs fewer changes (of the only kind that counts) than that.
        """
        dead, self._before = self.agent, self._containers()
        self._rows = len(self.host.server.all(WorkspaceEvent))
        point = self.proxy.kill_point(number, moment, lambda _: dead.kill(), only=only)
        edit()
        dead.look_again()
        rests = self._when_quiet(self._is_converged)
        self._wait_until(lambda: dead.is_gone() or rests(), 40, "neither killed nor converged")
        if not point.reached:
            self.proxy.reset()
            return False
        eventually(dead.is_gone, 10, "the kill point did not kill")
        self.kills += 1
        self._survive(point.reached[0], moment)
        return True

    def _survive(self, call: Call, moment: Moment) -> None:
        self.reached.add((str(call), moment))
        self.proxy.reset()
        what = f"killed at {call} ({moment.name}): {call.path}"
        begun = self.cycles_begun()
        self.agent = self._start()
        try:
            # The host may be as it should be before the new agent has even looked.
            self._wait_until(lambda: len(self.proxy.calls) > 3, 20, "no first look")
            self.settle()
        except AssertionError as problem:
            raise AssertionError(f"{what}: {problem}") from problem
        acted = [cycle for cycle in self.host.server.cycles() if cycle.number > begun]
        # The end of a build starts a cycle by itself, which only finishes what another began; it
        # is not counted against the limit. `cycles_needed` keeps the count with it.
        needed = [cycle for cycle in acted if "work" not in cycle.trigger.split(",")]
        self.cycles_needed.append(len(acted))
        assert len(needed) <= 2, f"{what}: {len(needed)} cycles were needed: {needed}"
        self._assert_nobody_else_suffered(what)
        # Reports have a loop of their own, behind the work.
        self._wait_until(lambda: self._was_told(what), 10, what)
        self._assert_silent(what)

    # --- the oracle ---

    def _assert_silent(self, what: str) -> None:
        self.proxy.reset()
        self.agent.look_again()
        self._wait_until(lambda: len(self.proxy.calls) > 3, 10, f"{what}: no full look")
        self._wait_until(self._when_quiet(lambda: True), 20, f"{what}: never quiet")
        changes = [str(call) for call in self.proxy.mutating_calls]
        assert changes == [], f"{what}: a converged host was changed again: {changes}"

    def _is_converged(self) -> bool:
        """The engine shows exactly what the document says; nothing twice, nothing left over."""
        api = self.client.api
        ours = {
            found["Names"][0].lstrip("/"): found["Id"]
            for found in api.containers(all=True)
            if naming.LABEL_WORKSPACE in found["Labels"] and found["Names"][0] != f"/{IMPOSTOR}"
        }
        wanted = {naming.container_name(w.spec.name) for w in self.host.workspaces.values()}
        _same("containers", set(ours), wanted)
        for workspace in self.host.workspaces.values():
            self._assert_is(workspace, ours[naming.container_name(workspace.spec.name)])
        networks = [n["Name"] for n in api.networks() if n["Name"].startswith("trailer-")]
        _same("networks", sorted(networks), sorted(f"trailer-{n}" for n in self.host.networks))
        every = [v["Name"] for v in api.volumes()["Volumes"] or []]
        volumes = sorted(name for name in every if name.startswith("trailer-"))
        _same("volumes", volumes, sorted(f"trailer-{name}" for name in self.host.volumes))
        tags = {tag for found in api.images() for tag in found["RepoTags"] or ()}
        built = {image.ref for image in self.host.images.values() if image.kind == "build"}
        _same("images", {tag for tag in tags if tag.startswith("trailer/")}, built)
        return True

    def _assert_is(self, workspace: DesiredWorkspace, container_id: str) -> None:
        try:
            seen = self.client.api.inspect_container(container_id)
        except NotFound as problem:
            raise AssertionError("a container went while it was looked at") from problem
        spec, name = workspace.spec, workspace.spec.name
        up = {"running": "running", "stopped": "exited"}[workspace.desired_state]
        _same(f"{name} status", seen["State"]["Status"], up)
        env = {f"{key}={value}" for key, value in spec.env.items()}
        _same(f"{name} env", env & set(seen["Config"]["Env"]), env)
        _same(f"{name} memory", seen["HostConfig"]["Memory"], spec.memory_bytes or 0)
        places = seen["NetworkSettings"]["Networks"]
        names = {f"trailer-{network_id[2:]}" for network_id in spec.network_ids} or {"bridge"}
        _same(f"{name} networks", set(places), names)
        known = all(name in (place["Aliases"] or ()) for place in places.values())
        _same(f"{name} alias", known, bool(spec.network_ids))
        mounts = {mount["Name"] for mount in seen["Mounts"]}
        _same(f"{name} mounts", mounts, {mount.source for mount in spec.mounts})
        if spec.health_check:
            _same(f"{name} health", seen["State"]["Health"]["Status"], "healthy")

    def _containers(self) -> dict[str, str]:
        """Workspace id -> container id."""
        label = naming.LABEL_WORKSPACE
        return {
            found["Labels"][label]: found["Id"]
            for found in self.client.api.containers(all=True, filters={"label": label})
            if found["Names"][0] != f"/{IMPOSTOR}"
        }

    def _was_told(self, what: str) -> bool:
        """No container came, went or was exchanged without a row in the ledger."""
        after = self._containers()
        rows = self.host.server.all(WorkspaceEvent)[self._rows :]
        for workspace_id in {*self._before, *after}:
            if self._before.get(workspace_id) == after.get(workspace_id):
                continue
            words = {"remove"} if workspace_id not in after else {"create", "replace", "heal"}
            told = [row.event for row in rows if row.workspace_id == workspace_id]
            assert words & set(told), f"{what}: the ledger says only {told} about {workspace_id}"
        return True

    # --- everybody else ---

    def _make_foreign_world(self) -> None:
        labels = {naming.LABEL_MANAGED: "true", naming.LABEL_WORKSPACE: "w-bystander"}
        self.client.networks.create("foreign")
        self.client.volumes.create("foreign")
        for name, given in (("foreign", {}), (IMPOSTOR, labels)):
            self.client.containers.run(
                BUSYBOX,
                RUN_UNTIL_STOPPED,
                name=name,
                labels=given,
                network="foreign",
                volumes={"foreign": {"bind": "/data"}},
                detach=True,
            )

    def _inspect_foreign_world(self) -> list[Any]:
        api: Any = self.client.api
        return [
            api.inspect_container("foreign"),
            api.inspect_container(IMPOSTOR),
            api.inspect_network("foreign"),
            api.inspect_volume("foreign"),
            api.inspect_image(BUSYBOX),
        ]

    def _life(self, name: str) -> tuple[str, str, int]:
        seen = self.client.api.inspect_container(name)
        return seen["Id"], seen["State"]["StartedAt"], seen["State"]["Pid"]

    def _assert_nobody_else_suffered(self, what: str) -> None:
        assert self._inspect_foreign_world() == self._foreign, f"{what}: foreign objects changed"
        alive = self._life("trailer-bystander")
        assert alive == self._bystander, f"{what}: a healthy bystander was restarted"


def _same(what: str, seen: object, wanted: object) -> None:
    assert seen == wanted, f"{what}: {seen!r} instead of {wanted!r}"
