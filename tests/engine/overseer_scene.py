"""A scripted agent on a real engine, and overseers that die at any call and come back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent.overseer.order import Order
from agent.overseer.run import Overseer, Pace
from agent.overseer.world import AGENT_NAME
from agent.protocol.naming import LABEL_AGENT
from agent.runtime.docker_agent import DockerAgents
from tests.ground import agent_image
from tests.ground.images import BUSYBOX
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.faults import Call, Moment
    from tests.ground.proxy import DockerApiProxy

IMAGE = "trailer-test/scripted-agent:1"
# It is well as soon as it runs, and says so when it is asked in the way of a real one.
DOCKERFILE = f"""FROM {BUSYBOX}
COPY python3 /bin/python3
RUN ["chmod", "755", "/bin/python3"]
ENTRYPOINT ["sh", "-c", "touch /tmp/up; trap 'exit 0' TERM; while :; do sleep 99 & wait $!; done"]
"""
HEALTH = b"#!/bin/sh\ntest -e /tmp/up\n"


class Killed(BaseException):
    """The overseer's process is gone; no handler of its own may run."""


class Mortal:
    """An engine whose caller can die: from then on no call returns to it."""

    def __init__(self, agents: DockerAgents) -> None:
        self._agents = agents
        self.is_dead = threading.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._agents, name)

        def call(*values: Any, **named: Any) -> Any:
            try:
                return method(*values, **named)
            finally:
                if self.is_dead.is_set():
                    raise Killed

        return call


class OverseerScene:
    """The agent is on two networks, under a name of its own on each, and holds a port."""

    def __init__(
        self, engine: PrivateEngine, client: docker.DockerClient, proxy: DockerApiProxy
    ) -> None:
        self.engine, self.client, self.proxy = engine, client, proxy
        self._overseers = 0

    def open(self) -> None:
        agent_image.build(self.client, IMAGE, DOCKERFILE, {"python3": HEALTH})
        # By its id, so that no try waits for a registry.
        self.image = str(self.client.images.get(IMAGE).id)
        for name in ("front", "back"):
            self.client.networks.create(name)
        api: Any = self.client.api
        made = api.create_container(
            self.image,
            name=AGENT_NAME,
            labels={LABEL_AGENT: "true"},
            environment={"MINE": "1"},
            ports=[6020],
            host_config=api.create_host_config(
                port_bindings={6020: ("127.0.0.1", 16020)},
                binds=["agent-state:/var/lib/trailer"],
                restart_policy={"Name": "unless-stopped"},
                network_mode="front",
            ),
            networking_config=api.create_networking_config(
                {"front": api.create_endpoint_config(aliases=["agent"])}
            ),
        )
        api.connect_container_to_network(made["Id"], "back", aliases=["helper"])
        api.start(made["Id"])
        self.parts = self._parts()

    # --- one replacement ---

    def replace(self) -> str:
        """By a new overseer; the agent's new id."""
        self._overseers += 1
        self._oversee(DockerAgents({"DOCKER_HOST": self.proxy.url}))
        return self.assert_one_working_agent("replaced")

    def kill_at(self, kind: str, number: int, moment: Moment, *, daemon_too: bool = False) -> None:
        """At the n-th call of that kind; then the engine starts the overseer again."""
        self._overseers += 1
        mortal = Mortal(DockerAgents({"DOCKER_HOST": self.proxy.url}))

        def kill(call: Call) -> None:
            mortal.is_dead.set()
            if daemon_too:
                self.engine.kill9()

        self.proxy.kill_point(number, moment, kill, only=kind)
        with pytest.raises(Killed):
            self._oversee(mortal)
        self.proxy.reset()
        if daemon_too:
            self.engine.start()
        self._oversee(DockerAgents({"DOCKER_HOST": self.proxy.url}))
        self.assert_one_working_agent(f"{kind} {number} ({moment.name})")

    def _oversee(self, agents: Any) -> None:
        Overseer(
            agents,
            own_id=f"overseer-{self._overseers}",
            wanted=lambda: Order(image=self.image),
            login=lambda image: None,
            load=lambda image: "",
            tell=lambda image, message, order: None,
            pace=Pace(patience=15, look=0.05, slice=0.1, first_pause=0.1),
        ).run()

    # --- the oracle ---

    def assert_one_working_agent(self, what: str) -> str:
        listed = self.client.api.containers(all=True)
        names = [raw["Names"][0] for raw in listed]
        assert names == [f"/{AGENT_NAME}"], f"{what}: {names}"
        agents = DockerAgents({"DOCKER_HOST": self.engine.url})
        container_id = str(listed[0]["Id"])
        eventually(lambda: agents.is_healthy(container_id), 10, f"{what}: it does not work", 0.05)
        assert self._parts() == self.parts, what
        return container_id

    def _parts(self) -> Any:
        seen = self.client.api.inspect_container(AGENT_NAME)
        short = str(seen["Id"])[:12]
        places = seen["NetworkSettings"]["Networks"]
        return {
            "env": seen["Config"]["Env"],
            "binds": seen["HostConfig"]["Binds"],
            "ports": seen["NetworkSettings"]["Ports"],
            "restart": seen["HostConfig"]["RestartPolicy"],
            "networks": {
                name: sorted(set(place["Aliases"] or ()) - {short})
                for name, place in places.items()
            },
        }
