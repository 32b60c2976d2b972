"""Links between workspaces and the managed router: one each, made, joined and left in place."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.protocol import naming
from agent.protocol.prerequisites import DesiredPrerequisite, PrerequisiteSpec
from agent.protocol.spec import HealthCheckSpec, UrlSpec
from agent.protocol.state import HostSettings, HostState, RouterSettings
from agent.runtime.subnets import free_subnet
from agent.steps import WriteRoutes
from tests.agent.documents import IMAGE_REF, document, workspace

if TYPE_CHECKING:
    from tests.agent.bench import Bench

MANAGED = RouterSettings(mode="traefik-files", network="trailer.router", managed=True)
NEEDED = DesiredPrerequisite(
    kind="router", image=IMAGE_REF, spec=PrerequisiteSpec(network="trailer.router")
)


def url(name: str) -> UrlSpec:
    return UrlSpec(subdomain=name, domain="apps.example.com", port=8080, auth="public")


def host(*names: str, router: RouterSettings = MANAGED, **fields: Any) -> HostState:
    """A workspace with a URL for each name."""
    return document(
        settings=HostSettings(router=router),
        prerequisites=(NEEDED,) if router.managed else (),
        workspaces=tuple(
            workspace(id=f"id-{name}", name=name, urls=(url(name),), **fields) for name in names
        ),
    )


def places(bench: Bench, name: str) -> set[str]:
    container = bench.runtime.named(name)
    assert container is not None
    return {place.network_name for place in container.attachments}


def networks(bench: Bench) -> set[str]:
    return {network.name for network in bench.runtime.networks.values()}


def test_no_two_workspaces_share_a_network_and_the_router_is_on_all(bench: Bench) -> None:
    bench.settle(host("one", "two"))
    one, two = naming.link_name("id-one"), naming.link_name("id-two")
    assert places(bench, "trailer-one") == {one}
    assert places(bench, "trailer-two") == {two}
    assert places(bench, "trailer.router") == {"trailer.router", one, two}
    assert bench.plan(host("one", "two")).nodes == ()


def test_a_route_is_written_once_the_router_has_joined_its_link(bench: Bench) -> None:
    """A connection that begins before would leave by another network, and hang there."""
    bench.settle(host("one"))
    steps = bench.plan(host("one", "three")).nodes
    assert [node for node in steps if node.step.verb == "create_network"]
    assert not [node for node in steps if isinstance(node.step, WriteRoutes)]
    bench.settle(host("one", "three"))
    assert any(b"three.apps.example.com" in content for content in bench.runtime.files.values())


def test_a_workspace_comes_and_goes_while_router_and_neighbour_stay(bench: Bench) -> None:
    bench.settle(host("one"))
    before = [bench.runtime.named(name) for name in ("trailer.router", "trailer-one")]
    bench.settle(host("one", "two"))
    bench.settle(host("one"))
    after = [bench.runtime.named(name) for name in ("trailer.router", "trailer-one")]
    assert [c.id for c in after if c] == [c.id for c in before if c]
    assert naming.link_name("id-two") not in networks(bench)
    assert places(bench, "trailer.router") == {"trailer.router", naming.link_name("id-one")}


def test_without_a_url_a_workspace_leaves_its_link_and_the_link_goes(bench: Bench) -> None:
    bench.settle(host("one"))
    bench.settle(without_urls())
    assert places(bench, "trailer-one") == {"bridge"}
    assert naming.link_name("id-one") not in networks(bench)


def without_urls() -> HostState:
    bare = workspace(id="id-one", name="one", revision=2)
    return document(
        settings=HostSettings(router=MANAGED), prerequisites=(NEEDED,), workspaces=(bare,)
    )


def test_a_new_router_joins_every_link(bench: Bench) -> None:
    bench.settle(host("one", "two"))
    router = bench.runtime.named("trailer.router")
    assert router is not None
    bench.runtime.remove_container(router.id, with_volumes=False)
    bench.settle(host("one", "two"))
    assert len(places(bench, "trailer.router")) == 3


def test_switched_off_leaves_nothing_behind(bench: Bench) -> None:
    bench.settle(host("one", "two"))
    bench.settle(host("one", "two", router=RouterSettings()))
    assert networks(bench) == {"bridge"}
    assert places(bench, "trailer-one") == {"bridge"}


def test_on_a_network_that_the_operator_named_all_stay_together(bench: Bench) -> None:
    named = msgspec.structs.replace(MANAGED, network="edge")
    bench.settle(host("one"))
    needed = msgspec.structs.replace(NEEDED, spec=PrerequisiteSpec(network="edge"))
    state = msgspec.structs.replace(host("one", "two", router=named), prerequisites=(needed,))
    bench.settle(state)
    assert places(bench, "trailer-one") == places(bench, "trailer-two") == {"edge"}
    assert not [name for name in networks(bench) if naming.is_link_name(name)]


def test_while_the_router_is_held_up_nobody_is_cut_off(bench: Bench) -> None:
    bench.settle(host("one"))
    plan = bench.plan(host("one"), held={"prerequisite:router": "The engine said no."})
    assert plan.nodes == ()


def test_the_name_is_handed_over_on_the_link(bench: Bench) -> None:
    check = HealthCheckSpec(test=("CMD", "true"))
    bench.settle(host("one", health_check=check))
    plan = bench.plan(host("one", health_check=check, env={"A": "1"}, revision=2))
    verbs = [node.step.verb for node in plan.nodes]
    assert verbs.index("wait_healthy") < verbs.index("disconnect_network")
    assert "create_network" not in verbs


def test_a_link_is_no_change_of_the_users_networks(bench: Bench) -> None:
    bench.settle(document(workspaces=(workspace(id="id-one", name="one"),)))
    plan = bench.plan(host("one", revision=2))
    assert not [c for n in plan.nodes for c in getattr(n.step, "changes", ()) if "." in str(c.old)]


# --- subnets ---


def test_small_subnets_are_cut_from_one_range_until_it_is_full() -> None:
    used: list[str] = []
    for _ in range(16):
        subnet, whole = free_subnet(["10.9.0.0/24"], used, prefix=28)
        assert whole == "10.9.0.0/24"
        assert not any(ip_network(subnet).overlaps(ip_network(other)) for other in used)
        used.append(subnet)
    assert free_subnet(["10.9.0.0/24"], used, prefix=28) == ("", "")


@pytest.mark.parametrize("ranges", [[], ["nonsense"], ["fd00::/64"], ["10.0.0.0/30"]])
def test_where_nothing_can_be_cut_nothing_is(ranges: list[str]) -> None:
    assert free_subnet(ranges, ["x", "fd00::/8"], prefix=28) == ("", "")
