"""Hostile networks on a real engine: the machine's own traffic and routes stay what they are."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import pytest
from docker.types import IPAMConfig, IPAMPool

from agent.host_network.kernel import read_ranges
from agent.protocol.session import AddressRange
from agent.runtime import docker_place
from agent.store.document import save_document
from tests.agent.documents import document, network
from tests.agent.fake_server import FakeServer
from tests.engine.agent_inside import AgentInside
from tests.engine.agent_process import AgentProcess
from tests.ground import hostnet
from tests.ground.elsewhere import Elsewhere
from tests.ground.images import BUSYBOX
from tests.ground.process import run
from tests.ground.wait import eventually
from tests.hostile_networks import REFUSED, TAKEN, named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from tests.engine.agent_scene import Launch
    from tests.engine.desired_host import DesiredHost
    from tests.ground.engine import PrivateEngine

# Links and routes like those of the table's host.
_LINKS = {
    "eth1": ["172.20.0.9/16", "fd12:1::9/64"],
    "eth2": ["100.64.8.9/24"],
    "eth3": ["10.128.0.5/32"],
    "eth4": ["192.168.77.9/24"],
    "lan0": ["192.168.1.9/24"],
    "tun0": ["10.255.0.1/30"],
}
_ROUTES = (
    ["0.0.0.0/1", "via", "10.255.0.2"],
    ["10.50.0.0/16", "via", "10.255.0.2"],
    ["10.51.0.7/32", "via", "10.255.0.2"],
    ["unreachable", "10.60.0.0/16"],
    ["10.61.0.0/16", "dev", "tun0", "table", "77"],
)
_OF_ITSELF = re.compile(r" dev (docker0|br-|veth)|fe80::|ff00::")
# Of root's rights the one to reach the engine's socket stays, as for a member of its group.
AS_NOBODY = ["setpriv", "--bounding-set", "-all,+dac_override", "--inh-caps", "-all"]


class Machine:
    """The network of the engine's machine, with a listener on its loopback alone."""

    def __init__(self, engine: PrivateEngine) -> None:
        self._place = hostnet.NAMESPACES / engine.host.name
        self.hits: list[str] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.here = stack.enter_context(Elsewhere(self._place))
            for name, addresses in _LINKS.items():
                self._ip("link", "add", name, "type", "bridge")
                stack.callback(self._ip, "link", "del", name)
                for address in addresses:
                    # Without the kernel's look for doubles, after which it adds further routes.
                    nodad = ("nodad",) if ":" in address else ()
                    self._ip("addr", "add", address, "dev", name, *nodad)
                self._ip("link", "set", name, "up")
            for route in _ROUTES:
                self._ip("route", "add", *route)
                if "unreachable" in route:
                    # The others go with their interface.
                    stack.callback(self._ip, "route", "del", *route)
            listener = self.here.run(socket.create_server, ("127.0.0.1", 7777))
            stack.callback(listener.close)
            # Closed alone, it would go on in the thread that waits on it.
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _ip(self, *words: str) -> str:
        return self.here.run(run, "ip", *words)

    def _listen(self, listener: socket.socket) -> None:
        while True:
            try:
                met, address = listener.accept()
            except OSError:
                return
            self.hits.append(address[0])
            met.close()

    def ranges(self) -> tuple[AddressRange, ...]:
        return self.here.run(read_ranges)

    def routes(self) -> list[str]:
        """Of all tables, but those of the engine's bridges and what the kernel does by itself
        when an interface comes up."""
        lines = self._ip("route", "show", "table", "all").splitlines()
        lines += self._ip("-6", "route", "show", "table", "all").splitlines()
        return sorted(line.strip() for line in lines if not _OF_ITSELF.search(line))

    def route_to(self, address: str) -> str:
        """The interface by which the machine's own traffic to the address leaves."""
        words = self._ip("route", "get", address).split()
        return words[words.index("dev") + 1]


@pytest.fixture
def machine(clean_engine: PrivateEngine) -> Iterator[Machine]:
    with Machine(clean_engine) as made:
        yield made


def test_interfaces_and_routes_are_read_from_the_kernel_as_they_are(machine: Machine) -> None:
    found = set(machine.ranges())
    assert {
        AddressRange(cidr="192.168.1.0/24", interface="lan0", direct=True),
        AddressRange(cidr="192.168.1.9/32", interface="lan0", direct=True),
        AddressRange(cidr="fd12:1::/64", interface="eth1", direct=True),
        AddressRange(cidr="10.128.0.5/32", interface="eth3", direct=True),
        AddressRange(cidr="0.0.0.0/0", interface="eth0"),
        AddressRange(cidr="0.0.0.0/1", interface="tun0"),
        AddressRange(cidr="10.50.0.0/16", interface="tun0"),
        AddressRange(cidr="10.51.0.7/32", interface="tun0"),
        AddressRange(cidr="10.60.0.0/16"),
        AddressRange(cidr="10.61.0.0/16", interface="tun0", direct=True),
        AddressRange(cidr="127.0.0.0/8", interface="lo", direct=True),
    } <= found
    assert not any(one.cidr.endswith(".255/32") for one in found)
    machine.here.run(run, "ip", "link", "set", "lan0", "down")
    down = AddressRange(cidr="192.168.1.0/24", interface="lan0", direct=True)
    assert down in machine.ranges()


def network_names(client: docker.DockerClient) -> set[str]:
    return {str(raw["Name"]) for raw in client.api.networks()}


def make_engine_networks(client: docker.DockerClient) -> None:
    """Those of the table that the engine has, made by somebody else than Trailer."""
    for one in TAKEN:
        if one.network and one.network != "bridge":
            bridge = {"com.docker.network.bridge.name": one.interface} if one.interface else None
            pools = IPAMConfig(pool_configs=[IPAMPool(subnet=one.cidr)])
            client.networks.create(one.network, ipam=pools, options=bridge)


def desire_hostile_networks(host: DesiredHost) -> None:
    for number, (fields, _, _) in enumerate(REFUSED):
        parent = fields.get("parent_interface")
        # The test machine's own link has that name, and other addresses.
        given = {**fields, "parent_interface": "lan0"} if parent == "eth0" else fields
        host.network(f"bad{number:03}", **given)


def test_a_hostile_server_gets_no_address_of_the_machine(
    machine: Machine,
    host: DesiredHost,
    clean_engine: PrivateEngine,
    engine_client: docker.DockerClient,
    tmp_path: Path,
) -> None:
    """All rows of the table, straight to the agent: no server judges them before it."""
    make_engine_networks(engine_client)
    theirs = network_names(engine_client)
    before = machine.routes()
    with host.one_edit():
        desire_hostile_networks(host)
        host.workspace("web", network_ids=("n-bad000", "n-free"))
        host.network("free", subnet="10.7.0.0/24")
        host.workspace("db", network_ids=("n-free",))
    agent = AgentInside(host, clean_engine.url, tmp_path, read_ranges=machine.ranges).start()
    try:
        agent.settle()
        made = network_names(engine_client) - theirs
        taken = [named(REFUSED[int(name[-3:])][0]) for name in made if "bad" in name]
        assert (taken, made) == ([], {"trailer-free"})
        for number in range(len(REFUSED)):
            told = host.server.resource(f"n-bad{number:03}")
            assert told is not None
            assert (told.status, bool(told.message)) == ("error", True)
        assert host.status("web").status == "error"
        assert "8.8.8.0/24 holds public addresses" in host.status("web").message
        assert host.status("db").status == "running"
        dial = "for to in 127.0.0.1 127.0.0.2 10.7.0.1 192.168.1.9; do nc -w1 $to 7777; done"
        engine_client.containers.get("trailer-db").exec_run(["sh", "-c", dial])
    finally:
        agent.stop()
    assert machine.routes() == before
    assert machine.hits == []
    machine.here.run(socket.create_connection, ("127.0.0.1", 7777), 5).close()
    eventually(lambda: machine.hits == ["127.0.0.1"], 5, "its own traffic goes elsewhere")


def test_without_the_agents_judgement_the_engine_takes_the_machines_addresses(
    machine: Machine, engine_client: docker.DockerClient
) -> None:
    """Why there is a rule: the engine itself refuses none of these."""
    for name, subnet in (("a", "8.8.8.0/24"), ("b", "192.168.1.64/26"), ("c", "10.50.3.0/24")):
        pools = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
        engine_client.networks.create(name, ipam=pools)
        assert machine.route_to(subnet.split("/")[0].rpartition(".")[0] + ".70").startswith("br-")


def test_an_agent_that_is_not_where_its_engine_is_refuses_and_says_why(
    server: FakeServer, launch: Launch
) -> None:
    """The tests' own network is not that of the engine: what is read here would be wrong."""
    server.desire(networks=(network("lab", subnet="10.7.0.0/24"), network("plain")))
    agent = launch()

    def told() -> bool:
        known = [server.resource(f"n-{name}") for name in ("lab", "plain")]
        return [one.status for one in known if one] == ["error", "created"]

    eventually(told, 20, f"not judged:\n{agent.log}")
    lab = server.resource("n-lab")
    assert lab is not None
    assert "the engine is not in this machine's own network" in lab.message


@pytest.mark.parametrize("rights", [[], AS_NOBODY], ids=["root", "no root"])
def test_an_agent_beside_its_engine_judges_by_what_it_reads_with_root_and_without(
    machine: Machine,
    clean_engine: PrivateEngine,
    engine_client: docker.DockerClient,
    tmp_path: Path,
    rights: list[str],
) -> None:
    """From the last good document, as in an outage: no server judged it."""
    lab, free = network("lab", subnet="192.168.1.0/24"), network("free", subnet="10.7.0.0/24")
    save_document(tmp_path, document(images=(), networks=(lab, free)))
    through = ["nsenter", "-t", str(clean_engine.pid), "--net", "--uts", *rights]
    agent = AgentProcess(FakeServer(), clean_engine.url, tmp_path, through=through).start()
    try:
        eventually(lambda: "trailer-free" in network_names(engine_client), 20, agent.log)
    finally:
        agent.kill()
    assert "trailer-lab" not in network_names(engine_client)
    assert "does not see" not in agent.log


def test_an_agents_container_sees_its_engines_machine_on_the_host_network_alone(
    clean_engine: PrivateEngine,
    engine_client: docker.DockerClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {"DOCKER_HOST": clean_engine.url}
    for mode, word in (("host", ""), ("bridge", "without --network host")):
        own = engine_client.containers.create(BUSYBOX, network_mode=mode)
        monkeypatch.setattr(docker_place, "own_container_id", lambda own=own: own.id)
        assert word in docker_place.place_problem(environment)
        assert bool(word) == bool(docker_place.place_problem(environment))
    # The container runs on another engine than the one that it was given.
    monkeypatch.setattr(docker_place, "own_container_id", lambda: "0" * 64)
    assert "without --network host" in docker_place.place_problem(environment)
