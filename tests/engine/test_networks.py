"""Bridge, internal and macvlan networks as containers see them, on a real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engine.agent_inside import AgentInside, silent
from tests.ground.images import HTTPD, HTTPD_COMMAND
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.engine.desired_host import DesiredHost
    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy


def reaches(client: docker.DockerClient, name: str, target: str) -> bool:
    ping = ["ping", "-c1", "-W2", target]
    return bool(client.containers.get(f"trailer-{name}").exec_run(ping).exit_code == 0)


def connects(client: docker.DockerClient, name: str, address: str, port: int) -> bool:
    dial = ["nc", "-w1", address, str(port), "-e", "true"]
    return bool(client.containers.get(f"trailer-{name}").exec_run(dial).exit_code == 0)


def address_of(client: docker.DockerClient, name: str) -> str:
    places = client.containers.get(f"trailer-{name}").attrs["NetworkSettings"]["Networks"]
    (place,) = places.values()
    return str(place["IPAddress"])


def test_workspaces_find_each_other_by_name_on_shared_networks_only(
    host: DesiredHost,
    agent: AgentInside,
    engine_client: docker.DockerClient,
    proxy: DockerApiProxy,
    clean_engine: PrivateEngine,
) -> None:
    with host.one_edit():
        host.network("lan", subnet="10.201.0.0/24", gateway="10.201.0.1")
        host.network("vault", internal=True)
        # The engine's own link to the outside is as good a parent as a machine's network card.
        host.network(
            "street",
            driver="macvlan",
            parent_interface="eth0",
            subnet="10.202.0.0/24",
            gateway="10.202.0.1",
            ip_range="10.202.0.128/25",
        )
        host.workspace("web", network_ids=("n-lan", "n-vault"))
        host.workspace("db", network_ids=("n-vault",))
        host.workspace("tv", network_ids=("n-street",))
        host.workspace("radio", network_ids=("n-street",))
    agent.settle()

    assert reaches(engine_client, "web", "db")
    assert reaches(engine_client, "tv", "radio")
    assert not reaches(engine_client, "tv", "db")
    # Nothing leads out of an internal network; out of a bridge something does.
    outside = f"{clean_engine.address.rpartition('.')[0]}.1"
    assert reaches(engine_client, "web", outside)
    assert not reaches(engine_client, "db", outside)
    assert engine_client.networks.get("trailer-vault").attrs["Internal"] is True
    tv = engine_client.containers.get("trailer-tv").attrs["NetworkSettings"]["Networks"]
    address = tv["trailer-street"]["IPAddress"]
    assert address.startswith("10.202.0.")
    assert int(address.rpartition(".")[2]) >= 128
    street = engine_client.networks.get("trailer-street").attrs
    assert (street["Driver"], street["Options"]["parent"]) == ("macvlan", "eth0")
    silent(agent, proxy)


def test_workspaces_on_different_networks_reach_neither_each_other_nor_the_platform(
    host: DesiredHost,
    agent: AgentInside,
    engine_client: docker.DockerClient,
    clean_engine: PrivateEngine,
) -> None:
    with host.one_edit():
        host.network("red", subnet="10.204.0.0/24", gateway="10.204.0.1")
        host.network("blue", subnet="10.205.0.0/24", gateway="10.205.0.1")
        host.workspace("spy", network_ids=("n-red",))
        host.workspace("near", network_ids=("n-red",), image_ref=HTTPD, command=HTTPD_COMMAND)
        host.workspace("far", network_ids=("n-blue",), image_ref=HTTPD, command=HTTPD_COMMAND)
    agent.settle()
    near, far = (address_of(engine_client, name) for name in ("near", "far"))
    eventually(lambda: connects(engine_client, "spy", near, 80), 10, "nobody answers beside it")
    assert not connects(engine_client, "spy", far, 80)
    # The machine has an address on each of its bridges: neither engine nor agent listens there.
    for gateway in ("10.204.0.1", "10.205.0.1", clean_engine.address):
        assert reaches(engine_client, "spy", gateway)
        for port in (2375, 2376, 6020, 8000, 8090):
            assert not connects(engine_client, "spy", gateway, port), (gateway, port)


def test_a_macvlan_on_an_interface_that_is_gone_is_told_and_holds_nobody_else_up(
    host: DesiredHost, agent: AgentInside, engine_client: docker.DockerClient
) -> None:
    with host.one_edit():
        host.network(
            "street",
            driver="macvlan",
            parent_interface="eth7.",
            subnet="10.203.0.0/24",
            gateway="10.203.0.1",
        )
        host.workspace("tv", network_ids=("n-street",))
        host.workspace("web")
    agent.settle()
    assert engine_client.containers.get("trailer-web").status == "running"
    told = host.status("tv")
    assert told.status == "error"
    assert "street" in told.message
