"""The rules of the in-memory host once more, on a real engine: edits, hands and crashes, in any
order, end in the document, with nobody else touched and then silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import APIError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent.protocol import naming
from agent.protocol.spec import HealthCheckSpec
from tests.engine.kill_scene import IMPOSTOR, KillScene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker
    from docker.models.containers import Container

    from tests.ground.proxy import DockerApiProxy

CHECK = HealthCheckSpec(test=("CMD", "true"), interval=0.5, timeout=5.0, retries=2)
fields = st.fixed_dictionaries(
    {},
    optional={
        "env": st.dictionaries(st.sampled_from("XY"), st.sampled_from("12"), max_size=2),
        "memory_bytes": st.sampled_from([None, 64 * 2**20]),
        "network_ids": st.lists(st.sampled_from(["n-lan", "n-dmz"]), unique=True).map(tuple),
        "health_check": st.sampled_from([None, CHECK]),
    },
)
which = st.integers(0, 3)
moves = st.one_of(
    st.tuples(st.just("create"), st.just(0), fields),
    st.tuples(st.just("edit"), which, fields),
    st.tuples(st.just("state"), which, st.sampled_from(["running", "stopped"])),
    st.tuples(st.just("delete"), which, st.none()),
    st.tuples(
        st.just("hand"),
        which,
        st.sampled_from(["stop", "kill", "pause", "remove", "rename", "cut"]),
    ),
    st.tuples(st.just("crash"), st.just(0), st.none()),
    st.tuples(st.just("settle"), st.just(0), st.none()),
)


class Walk(KillScene):
    """A host that anything happens to."""

    def begin(self) -> None:
        with self.host.one_edit():
            for name in [name for name in self.host.workspaces if name != "bystander"]:
                self.host.delete_workspace(name)
            for name in ("lan", "dmz"):
                self.host.network(name)
            self.move("create", 0, {"network_ids": ("n-lan", "n-dmz"), "health_check": CHECK})
            self.move("create", 0, {"memory_bytes": 64 * 2**20})
        self.settle()

    def move(self, verb: str, number: int, what: Any) -> None:
        names = sorted(name for name in self.host.workspaces if name != "bystander")
        name = names[number % len(names)] if names else ""
        if verb == "create":
            self._made = getattr(self, "_made", 0) + 1
            self.host.workspace(f"w{self._made}", startup_timeout=10.0, **what)
        elif verb == "crash":
            self.agent.kill()
            self.agent = self._start()
        elif verb == "settle":
            self.settle()
        elif name and verb == "edit":
            self.host.edit(name, **what)
        elif name and verb == "state":
            self.host.edit(name, desired_state=what)
        elif name and verb == "delete":
            self.host.delete_workspace(name)
        elif name:
            self._lay_hands_on(self.host.workspaces[name].id, what)

    def _lay_hands_on(self, workspace_id: str, how: str) -> None:
        """Whatever is there at this moment, in whatever state; the engine may refuse."""
        for container in self._of(workspace_id)[:1]:
            try:
                if how == "remove":
                    container.remove(force=True)
                elif how == "rename":
                    container.rename(f"renamed-{container.short_id}")
                elif how == "cut":
                    for place in self.client.networks.list():
                        if place.name in container.attrs["NetworkSettings"]["Networks"]:
                            place.disconnect(container)
                else:
                    getattr(container, how)(**({"timeout": 1} if how == "stop" else {}))
            except APIError:
                continue

    def _of(self, workspace_id: str) -> list[Container]:
        # The engine lists a container in the making a moment before it can be inspected.
        found = self.client.containers.list(
            all=True,
            ignore_removed=True,
            filters={"label": f"{naming.LABEL_WORKSPACE}={workspace_id}"},
        )
        return [container for container in found if container.name != IMPOSTOR]

    def _is_converged(self) -> bool:
        """A stopped workspace may have lost its container: it needs none."""
        labelled = self.client.api.containers(all=True, filters={"label": naming.LABEL_WORKSPACE})
        owners = [
            c["Labels"][naming.LABEL_WORKSPACE]
            for c in labelled
            if c["Names"][0] != f"/{IMPOSTOR}"
        ]
        wanted = {workspace.id: workspace for workspace in self.host.workspaces.values()}
        assert len(owners) == len(set(owners)), f"two containers for one workspace: {owners}"
        assert set(owners) <= set(wanted), "a deleted workspace still has its container"
        for workspace_id, workspace in wanted.items():
            found = self._of(workspace_id)
            if workspace.desired_state == "running":
                assert [c.name for c in found] == [naming.container_name(workspace.spec.name)]
                self._assert_is(workspace, str(found[0].id))
            else:
                assert not [c.name for c in found if c.status in ("running", "paused")]
        return True

    def end(self, what: str) -> None:
        self.settle()
        self._assert_nobody_else_suffered(what)
        self._assert_silent(what)


@pytest.fixture
def walk(
    proxy: DockerApiProxy, engine_client: docker.DockerClient, tmp_path: Path
) -> Iterator[Walk]:
    made = Walk(proxy, engine_client, tmp_path)
    try:
        made.open()
        yield made
    finally:
        made.close()


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(steps=st.lists(moves, min_size=10, max_size=16))
def test_whatever_happens_to_a_host_it_ends_as_the_document_says(
    walk: Walk, steps: list[tuple[str, int, Any]]
) -> None:
    walk.begin()
    for verb, number, what in steps:
        walk.move(verb, number, what)
    walk.end(f"after {steps}")
