"""Routes of workspaces' URLs: one function, Traefik's two spellings, and the plans they make."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from agent.observed import ObservedNetwork
from agent.plan import WorkspaceFinding
from agent.protocol.compare import compare
from agent.protocol.identity import CLAIMS
from agent.protocol.prerequisites import DesiredPrerequisite, PrerequisiteSpec
from agent.protocol.spec import HealthCheckSpec, UrlSpec
from agent.protocol.state import HostSettings, HostState, RouterSettings
from agent.routing.routes import routes_of
from agent.routing.traefik import route_labels, routes_file
from tests.agent.documents import IMAGE_REF, document, workspace
from tests.agent.fake_server import HOST_ID, HOST_KEY

if TYPE_CHECKING:
    from tests.agent.bench import Bench

FILES = RouterSettings(
    mode="traefik-files",
    network="edge",
    managed=True,
    relay_domain="trailer.example.com",
    forward_auth="https://trailer.example.com/forward-auth/",
)
LABELS = msgspec.structs.replace(FILES, mode="traefik-labels", managed=False, entrypoint="web")
ROUTER = DesiredPrerequisite(kind="router", image=IMAGE_REF, spec=PrerequisiteSpec(network="edge"))
OPEN = UrlSpec(subdomain="box", domain="apps.example.com", port=8080, auth="public")
CLOSED = UrlSpec(subdomain="own", domain="apps.example.com", port=80, tls=True, auth="owner")
RELAYED = UrlSpec(subdomain="box", domain="trailer.example.com", port=80, auth="public")


def routes(*urls: UrlSpec, router: RouterSettings = FILES, revision: int = 3) -> Any:
    spec = workspace(urls=urls).spec
    return routes_of(
        "6f1c7a7e-0000", spec, router, revision=revision, host_id=HOST_ID, host_key=HOST_KEY
    )


def host(router: RouterSettings, *urls: UrlSpec, **fields: Any) -> HostState:
    needed = (ROUTER,) if router.mode == "traefik-files" else ()
    return document(
        settings=HostSettings(router=router),
        prerequisites=needed,
        workspaces=(workspace(urls=urls, **fields),),
    )


# --- the function ---


def test_a_url_is_a_route_and_one_through_the_server_is_not() -> None:
    (route,) = routes(OPEN, RELAYED)
    assert (route.rule, route.port) == ("Host(`box.apps.example.com`)", 8080)
    assert route.auth_address == ""
    assert routes(OPEN, router=RouterSettings()) == ()


def test_a_closed_url_asks_the_server_with_a_key_for_its_own_name() -> None:
    (route,) = routes(CLOSED)
    assert route.auth_address.startswith(
        "https://trailer.example.com/forward-auth/6f1c7a7e-0000/own.apps.example.com/?key="
    )
    (other,) = routes(msgspec.structs.replace(CLOSED, subdomain="two"))
    assert other.auth_address[-64:] != route.auth_address[-64:]
    assert (route.entrypoint, route.tls) == ("websecure", True)


def test_a_newer_revision_has_another_name_and_a_higher_priority() -> None:
    (old,), (new,) = routes(OPEN, revision=3), routes(OPEN, revision=4)
    assert old.name != new.name
    assert new.priority > old.priority > 300


def test_urls_whose_names_read_alike_have_routes_of_their_own() -> None:
    alike = (
        msgspec.structs.replace(OPEN, subdomain="a-b", domain="c.example.com"),
        msgspec.structs.replace(OPEN, subdomain="a", domain="b-c.example.com"),
    )
    found = routes(OPEN, *alike)
    assert len({route.name for route in found}) == 3
    assert routes(OPEN)[0].name in {route.name for route in found}, "others keep their names"


def test_the_file_is_never_empty_and_the_same_for_the_same_routes() -> None:
    empty = json.loads(routes_file(()))
    assert list(empty["http"]["middlewares"]) == ["trailer-strip"]
    pairs = [("web", route) for route in routes(OPEN, CLOSED)]
    assert routes_file(pairs) == routes_file(reversed(pairs))


def test_the_file_names_router_service_and_auth() -> None:
    http = json.loads(routes_file([("web", route) for route in routes(OPEN, CLOSED)]))["http"]
    name = "trailer-6f1c7a7e-own-apps-example-com-r3"
    assert http["routers"][name] == {
        "rule": "Host(`own.apps.example.com`)",
        "service": name,
        "priority": 1003,
        "middlewares": ["trailer-strip", name],
        "entryPoints": ["websecure"],
        "tls": {},
    }
    assert http["services"][name]["loadBalancer"]["servers"] == [{"url": "http://web:80"}]
    assert http["middlewares"][name]["forwardAuth"]["authResponseHeaders"] == [
        *("X-Trailer-User", "Cookie", "Authorization")
    ]


def test_labels_say_the_same_and_an_images_own_lead_nowhere() -> None:
    inherited = {"traefik.http.routers.evil.rule": "PathPrefix(`/`)", "traefik.enable": "true"}
    labels = route_labels(routes(OPEN, router=LABELS), network="edge", inherited=inherited)
    name = "trailer-6f1c7a7e-box-apps-example-com-r3"
    assert labels[f"traefik.http.routers.{name}.rule"] == "Host(`box.apps.example.com`)"
    assert labels[f"traefik.http.services.{name}.loadbalancer.server.port"] == "8080"
    assert labels["traefik.http.routers.evil.entrypoints"] == "trailer-nowhere"
    assert (labels["traefik.enable"], labels["traefik.docker.network"]) == ("true", "edge")
    assert route_labels((), network="", inherited=inherited)["traefik.enable"] == "false"


def test_both_spellings_take_out_every_claim_that_the_server_does() -> None:
    pairs = [("web", route) for route in routes(CLOSED)]
    strip = json.loads(routes_file(pairs))["http"]["middlewares"]["trailer-strip"]["headers"]
    assert strip["customRequestHeaders"] == dict.fromkeys(CLAIMS, "")
    labels = route_labels(routes(CLOSED, router=LABELS), network="", inherited={})
    name = "traefik.http.middlewares.trailer-6f1c7a7e-own-apps-example-com-r3-strip"
    stripped = [k for k, v in labels.items() if k.startswith(name) and v == ""]
    assert {key.rpartition(".")[2] for key in stripped} == set(CLAIMS)
    # What Traefik itself says of a request has to stay.
    assert not {"X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} & set(CLAIMS)


@pytest.mark.parametrize("key", ["Traefik.Enable", "TRAEFIK.HTTP.Routers.evil.EntryPoints"])
def test_no_spelling_of_an_images_label_stands_against_ours(key: str) -> None:
    labels = route_labels(routes(OPEN, router=LABELS), network="", inherited={key: "x"})
    assert labels[key] == labels[key.lower()] != "x"


# --- plans ---


def test_the_router_is_told_and_a_url_changed_in_place(bench: Bench) -> None:
    bench.settle(host(FILES, OPEN))
    container = bench.runtime.named("trailer-web")
    router = bench.runtime.named("trailer.router")
    assert container is not None
    assert router is not None
    assert b"box.apps.example.com" in bench.runtime.files[router.id, "/etc/trailer/trailer.yml"]
    written = [data for (where, _), data in bench.runtime.files.items() if where == router.id]
    assert len(written) == 2, "one stays while the other is replaced"
    assert written[0] == written[1]
    assert [place.network_name for place in container.attachments] == ["edge"]

    changed = host(FILES, CLOSED, revision=2)
    plan = bench.plan(changed)
    assert [node.step.verb for node in plan.nodes] == ["write_routes"]
    bench.settle(changed)
    assert b"box.apps" not in bench.runtime.files[router.id, "/etc/trailer/trailer.yml"]
    assert bench.runtime.named("trailer-web") is not None
    assert bench.plan(changed).nodes == ()


def test_a_stopped_workspace_has_no_route(bench: Bench) -> None:
    bench.settle(host(FILES, OPEN))
    bench.settle(host(FILES, OPEN, desired_state="stopped", revision=2))
    router = bench.runtime.named("trailer.router")
    assert router is not None
    assert b"box.apps" not in bench.runtime.files[router.id, "/etc/trailer/trailer.yml"]


def test_without_its_last_url_a_workspace_leaves_the_routers_network(bench: Bench) -> None:
    bench.settle(host(FILES, OPEN))
    bench.settle(host(FILES, revision=2))
    container = bench.runtime.named("trailer-web")
    assert container is not None
    assert [place.network_name for place in container.attachments] == ["bridge"]


def test_a_new_router_is_told_again(bench: Bench) -> None:
    bench.settle(host(FILES, OPEN))
    router = bench.runtime.named("trailer.router")
    assert router is not None
    bench.runtime.remove_container(router.id, with_volumes=False)
    bench.settle(host(FILES, OPEN))
    fresh = bench.runtime.named("trailer.router")
    assert fresh is not None
    assert (fresh.id, "/etc/trailer/trailer.yml") in bench.runtime.files


def test_with_labels_a_changed_url_replaces_and_nothing_else_does(bench: Bench) -> None:
    bench.runtime.networks["n1"] = ObservedNetwork(id="n1", name="edge")
    bench.settle(host(LABELS, OPEN))
    container = bench.runtime.named("trailer-web")
    assert container is not None
    assert any(key.startswith("traefik.http.routers.trailer-") for key in container.labels)
    assert bench.plan(host(LABELS, OPEN)).nodes == ()
    assert bench.plan(host(LABELS, OPEN, revision=5)).nodes == (), "another revision alone"
    replaced = bench.plan(host(LABELS, CLOSED, revision=2))
    assert "create_container" in [node.step.verb for node in replaced.nodes]


def test_with_labels_another_address_of_the_server_or_network_replaces(bench: Bench) -> None:
    """The router would go on asking where nobody answers, or looking where nothing is."""
    bench.runtime.networks["n1"] = ObservedNetwork(id="n1", name="edge")
    bench.settle(host(LABELS, CLOSED))
    moved = msgspec.structs.replace(LABELS, forward_auth="https://new.example.com/forward-auth/")
    (change,) = causes(bench.plan(host(moved, CLOSED)))
    assert change.field == "forward_auth"
    assert change.old.startswith("https://trailer.example.com/forward-auth/")
    assert change.new.startswith("https://new.example.com/forward-auth/")
    assert "key" not in change.old + change.new
    bench.settle(host(LABELS, OPEN, revision=2))
    assert causes(bench.plan(host(moved, OPEN, revision=2))) == (), "nobody asks about this one"
    bench.runtime.networks["n2"] = ObservedNetwork(id="n2", name="other")
    away = msgspec.structs.replace(LABELS, network="other")
    (change,) = causes(bench.plan(host(away, OPEN, revision=2)))
    assert (change.field, change.old, change.new) == ("router_network", "edge", "other")


def causes(plan: Any) -> tuple[Any, ...]:
    return next((node.step.changes for node in plan.nodes if node.step.changes), ())


def test_with_labels_a_snapshots_old_routes_replace_nothing(bench: Bench) -> None:
    bench.runtime.networks["n1"] = ObservedNetwork(id="n1", name="edge")
    name = "traefik.http.routers.trailer-0a0a0a0a-box-apps-example-com-r1"
    image_carries(bench, {f"{name}.rule": "Host(`box.apps.example.com`)", f"{name}.tls": "true"})
    for router in (LABELS, FILES):
        bench.settle(host(router, OPEN))
        assert bench.plan(host(router, OPEN)).nodes == ()


def image_carries(bench: Bench, labels: dict[str, str]) -> None:
    image = bench.runtime.inspect_image(IMAGE_REF)
    labelled = replace(image, labels=labels)
    bench.runtime.images = {
        key: labelled if value.id == image.id else value
        for key, value in bench.runtime.images.items()
    }


def test_another_mode_replaces_what_carries_routes(bench: Bench) -> None:
    bench.runtime.networks["n1"] = ObservedNetwork(id="n1", name="edge")
    bench.settle(host(LABELS, OPEN))
    plan = bench.plan(host(RouterSettings(), OPEN))
    assert "create_container" in [node.step.verb for node in plan.nodes]
    bench.settle(host(RouterSettings(), OPEN))
    assert bench.plan(host(RouterSettings(), OPEN)).nodes == ()


def test_the_preview_agrees() -> None:
    old, new = workspace(urls=(OPEN,)).spec, workspace(urls=(CLOSED,)).spec
    assert [c.effect for c in compare(old, new, router_mode="traefik-files")] == ["in_place"]
    assert [c.effect for c in compare(old, new, router_mode="traefik-labels")] == ["replace"]


@pytest.mark.parametrize("key", ["traefik.http.routers.evil.rule", "Traefik.HTTP.Routers.e.Rule"])
def test_an_images_own_labels_are_switched_off_on_the_container(bench: Bench, key: str) -> None:
    image_carries(bench, {key: "Host(`x`)"})
    bench.settle(host(FILES, OPEN))
    container = bench.runtime.named("trailer-web")
    assert container is not None
    assert container.labels["traefik.enable"] == "false"


def test_a_workspace_routed_on_one_of_the_engines_own_networks_is_an_error_in_words(
    bench: Bench,
) -> None:
    plan = bench.plan(host(msgspec.structs.replace(LABELS, network="bridge"), OPEN))
    assert plan.nodes == ()
    (status,) = [one for one in plan.findings if isinstance(one, WorkspaceFinding)]
    assert status.status == "error"
    assert status.message.startswith("The network bridge is the engine's own")


def test_the_alias_is_handed_over_on_the_routers_network_too(bench: Bench) -> None:
    check = HealthCheckSpec(test=("CMD", "true"))
    bench.settle(host(FILES, OPEN, health_check=check))
    plan = bench.plan(host(FILES, OPEN, health_check=check, env={"A": "1"}, revision=2))
    verbs = [node.step.verb for node in plan.nodes]
    assert verbs.index("wait_healthy") < verbs.index("disconnect_network")
    assert verbs.count("disconnect_network") == 2, "of the new one, then of the old one"
