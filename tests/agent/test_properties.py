"""Hypothesis: whatever happens to a host, cycles settle, reach the document and harm nobody."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from agent.observed import ObservedContainer, ObservedVolume
from agent.protocol.spec import HealthCheckSpec, MountSpec, PortSpec
from agent.protocol.state import DesiredWorkspace, HostState
from tests.agent.bench import Bench
from tests.agent.documents import document, network, tombstone, volume, workspace

NAMES = ("a", "b", "c", "d", "e")
NETWORKS = ("lan", "dmz")

edits = st.fixed_dictionaries(
    {},
    optional={
        "env": st.dictionaries(st.sampled_from("XY"), st.sampled_from("12"), max_size=2),
        "cpus": st.sampled_from([None, 0.5, 1.0]),
        "memory_bytes": st.sampled_from([None, 64 * 2**20]),
        "network_ids": st.lists(st.sampled_from(["n-lan", "n-dmz"]), unique=True).map(tuple),
        "health_check": st.sampled_from([None, HealthCheckSpec(test=("CMD", "true"))]),
        "ports": st.sampled_from([(), (PortSpec(container_port=80, host_port=8080),)]),
        "mounts": st.sampled_from(
            [(), (MountSpec(target="/d", source="trailer-data", volume_id="v-data"),)]
        ),
        "generation": st.integers(0, 2),
    },
)


class Host(RuleBasedStateMachine):
    """Edits, hand-made drift and crashes in any order; `tick` is one cycle of the agent."""

    @initialize()
    def begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.bench = Bench(Path(self._folder.name))
        self.workspaces: dict[str, DesiredWorkspace] = {}
        self.deleted: dict[str, str] = {}
        self.foreign: dict[str, ObservedContainer] = {}
        self.bench.runtime.volumes["alien"] = ObservedVolume(name="alien")

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.desired_is_reached()
            self._folder.cleanup()

    def document(self) -> HostState:
        return document(
            workspaces=tuple(self.workspaces.values()),
            networks=tuple(network(name) for name in NETWORKS),
            volumes=(volume(),),
            tombstones=tuple(
                tombstone("workspace", workspace_id, f"trailer-{name}")
                for workspace_id, name in self.deleted.items()
            ),
        )

    def ours(self) -> list[ObservedContainer]:
        return [c for c in self.bench.runtime.containers.values() if c.id not in self.foreign]

    # --- users ---

    @rule(name=st.sampled_from(NAMES), fields=edits)
    def create_or_edit(self, name: str, fields: dict[str, Any]) -> None:
        known = self.workspaces.get(name)
        if known is None:
            workspace_id = f"w-{name}-{len(self.deleted)}"
            self.workspaces[name] = workspace(name, id=workspace_id, **fields)
            return
        self.workspaces[name] = msgspec.structs.replace(
            known,
            revision=known.revision + 1,
            spec=msgspec.structs.replace(known.spec, **fields),
        )

    @rule(name=st.sampled_from(NAMES), state=st.sampled_from(["running", "stopped"]))
    def start_or_stop(self, name: str, state: str) -> None:
        known = self.workspaces.get(name)
        if known is not None:
            self.workspaces[name] = msgspec.structs.replace(
                known, desired_state=state, revision=known.revision + 1
            )

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        known = self.workspaces.pop(name, None)
        if known is not None:
            self.deleted[known.id] = name

    # --- hands on the engine ---

    @rule(data=st.data(), state=st.sampled_from(["exited", "paused", "gone", "created"]))
    def meddle(self, data: st.DataObject, state: str) -> None:
        containers = self.ours()
        if not containers:
            return
        victim = data.draw(st.sampled_from(containers))
        if state == "gone":
            del self.bench.runtime.containers[victim.id]
        else:
            self.bench.runtime.containers[victim.id] = replace(victim, state=state)

    @rule(data=st.data())
    def cut_networks(self, data: st.DataObject) -> None:
        containers = self.ours()
        if containers:
            victim = data.draw(st.sampled_from(containers))
            self.bench.runtime.containers[victim.id] = replace(victim, attachments=())

    @rule(data=st.data())
    def change_limits(self, data: st.DataObject) -> None:
        containers = self.ours()
        if containers:
            victim = data.draw(st.sampled_from(containers))
            self.bench.runtime.containers[victim.id] = replace(victim, nano_cpus=250_000_000)

    @rule(data=st.data(), name=st.sampled_from(["x1", "x2"]))
    def rename(self, data: st.DataObject, name: str) -> None:
        containers = self.ours()
        if containers and self.bench.runtime.named(name) is None:
            victim = data.draw(st.sampled_from(containers))
            self.bench.runtime.containers[victim.id] = replace(victim, name=name)

    @rule(data=st.data(), number=st.integers(0, 2))
    def copy_labels(self, data: st.DataObject, number: int) -> None:
        containers = self.ours()
        name = f"impostor-{number}"
        if containers and self.bench.runtime.named(name) is None:
            original = data.draw(st.sampled_from(containers))
            made = self.bench.runtime.add_container(name, labels=original.labels)
            self.foreign[made] = self.bench.runtime.containers[made]

    @precondition(lambda self: not self.foreign)
    @rule(name=st.sampled_from(NAMES))
    def take_a_name(self, name: str) -> None:
        if self.bench.runtime.named(f"trailer-{name}") is None:
            made = self.bench.runtime.add_container(f"trailer-{name}")
            self.foreign[made] = self.bench.runtime.containers[made]

    # --- the agent ---

    @rule()
    def tick(self) -> None:
        self.bench.cycle(self.document())

    @rule(
        verb=st.sampled_from(
            ["create_container", "start_container", "stop_container", "rename_container"]
        )
    )
    def tick_with_a_failing_call(self, verb: str) -> None:
        self.bench.runtime.failing[verb] = 1
        self.bench.cycle(self.document())
        self.bench.runtime.failing.clear()

    @rule()
    def plan_twice(self) -> None:
        desired = self.document()
        assert self.bench.plan(desired) == self.bench.plan(desired)

    # --- what must always hold ---

    @invariant()
    def foreign_objects_are_untouched(self) -> None:
        if not hasattr(self, "bench"):
            return
        for container_id, before in self.foreign.items():
            assert self.bench.runtime.containers[container_id] == before
        assert "alien" in self.bench.runtime.volumes

    @invariant()
    def data_is_kept(self) -> None:
        if hasattr(self, "bench"):
            assert "remove_volume" not in self.bench.runtime.mutations
            assert "remove_image" not in self.bench.runtime.mutations

    def desired_is_reached(self) -> None:
        desired = self.document()
        self.bench.settle(desired, most=6)
        taken = {c.name for c in self.foreign.values()}
        for known in self.workspaces.values():
            name = f"trailer-{known.spec.name}"
            mine = [c for c in self.ours() if c.labels.get("trailer.workspace") == known.id]
            assert len(mine) <= 1
            if name in taken:
                continue
            if known.desired_state == "running":
                assert [(c.name, c.state) for c in mine] == [(name, "running")]
            else:
                assert all(not c.is_up for c in mine)
        wanted = {known.id for known in self.workspaces.values()}
        assert {c.labels["trailer.workspace"] for c in self.ours()} <= wanted
        self.bench.runtime.mutations.clear()
        assert self.bench.cycle(desired).nodes == ()
        assert self.bench.runtime.mutations == []


TestHost = Host.TestCase
TestHost.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
