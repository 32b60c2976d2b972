"""URLs on a host's own router: the real Traefik, as a prerequisite and as an operator's own."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import requests
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agent.protocol.identity import CLAIMS
from tests.e2e.scenario import User
from tests.e2e.url_scene import Visitor, serving
from tests.ground.load import Load
from tests.ground.router_image import ROUTER, ensure_router
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer
from tests.ground.url_image import APP_PORT, ensure_app
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

    from tests.ground.engine import PrivateEngine

DOMAIN = "apps.test"
# A router reaches a program by the container's address, not on its loopback.
LISTENING = ["python3", "/url_app.py", str(APP_PORT), "0.0.0.0"]


class RoutedVisitor(Visitor):
    """Names under the domain lead to the host's published port."""

    def __init__(self, trailer: RunningTrailer, address: str) -> None:
        super().__init__(trailer)
        self.host = address
        self.session.get_adapter("http://").place = address  # type: ignore[attr-defined]

    def address(self, subdomain: str, path: str = "/") -> str:
        return f"http://{subdomain}.{DOMAIN}{path}"


@pytest.fixture(scope="module")
def client(engine: PrivateEngine) -> Iterator[docker.DockerClient]:
    with closing(engine.client()) as found:
        engine.clean()
        ensure_app(found)
        ensure_router(found)
        yield found
        engine.clean()


@pytest.fixture(scope="module")
def user(engine: PrivateEngine, client: docker.DockerClient) -> Iterator[User]:
    """A server that the host's containers reach."""
    trailer = RunningTrailer(engine.url)
    place = f"{engine.host.gateway}:{trailer.port}"
    trailer.url = f"http://{place}"
    trailer.env = {"TRAILER_BIND": place}
    try:
        yield User(trailer.start())
    finally:
        trailer.destroy()


def router(user: User, **fields: Any) -> None:
    host = user.online_host()
    user.patch(f"/hosts/{host['id']}/", {"router": fields})


def router_id(client: docker.DockerClient) -> str:
    """Empty while there is none."""
    listed = client.api.containers(all=True, filters={"name": "^/trailer.router$"})
    return str(listed[0]["Id"]) if listed else ""


def answers(visitor: RoutedVisitor, subdomain: str) -> bool:
    try:
        reply = visitor.get(subdomain)
    except requests.ConnectionError:
        return False
    assert reply.status_code in {200, 404, 502}, f"{reply.status_code} {reply.text}"
    return reply.status_code == 200


def reaches(visitor: RoutedVisitor, subdomain: str) -> None:
    eventually(lambda: answers(visitor, subdomain), 30, f"no route to {subdomain}")


def test_a_managed_router_serves_urls_and_a_change_restarts_nothing(
    user: User, client: docker.DockerClient, engine: PrivateEngine
) -> None:
    visitor = RoutedVisitor(user.trailer, engine.address)
    router(user, mode="traefik-files", managed=True, image=ROUTER)
    workspace = serving(
        user,
        "app",
        {"subdomain": "app", "domain": DOMAIN},
        {"subdomain": "mine", "domain": DOMAIN, "auth": "owner"},
        command=LISTENING,
    )
    reaches(visitor, "app")
    assert "hello from the app" in visitor.get("app").text
    claims_nothing(visitor, "app")
    claims = {"X_Trailer_User": "root", "X.Trailer.User": "root"}
    fields = visitor.get("app", "/headers", headers=claims).json()
    assert not [field for field in fields if "root" in field[1]], "in no spelling"
    assert visitor.get("nobody").status_code == 404, "the labels of its image made a route"
    signs_in_and_returns(visitor, user.trailer)

    before = user.wait_for(workspace, "running")["container_id"]
    with connect(
        f"ws://app.{DOMAIN}/ws", sock=socket.create_connection((engine.address, 80)), proxy=None
    ) as wire:
        wire.send("one")
        assert wire.recv(timeout=10) == "echo one"
        urls = [{"subdomain": "other", "domain": DOMAIN, "port": 8080, "auth": "public"}]
        plan = user.post(f"/workspaces/{workspace['id']}/plan/", {"urls": urls}, status=200)
        assert plan["action"] == "in_place"
        user.patch(f"/workspaces/{workspace['id']}/", {"urls": urls})
        reaches(visitor, "other")
        eventually(lambda: not answers(visitor, "app"), 20, "the old route is still there")
        wire.send("two")
        assert wire.recv(timeout=10) == "echo two"
    is_replaced_and_pruned(user, client, visitor)
    assert user.wait_for(workspace, "running")["container_id"] == before


def signs_in_and_returns(visitor: RoutedVisitor, trailer: RunningTrailer) -> None:
    page = visitor.navigate("mine", "/?a=1")
    assert page.url.startswith(f"{trailer.url}/login/")
    sent = visitor.submit(page.url, USERNAME, PASSWORD)
    onward = sent.headers["Refresh"].partition("url=")[2]
    back = visitor.session.get(onward, headers={"Accept": "text/html"}, timeout=30)
    assert back.url == visitor.address("mine", "/?a=1")
    assert "hello from the app" in back.text
    fields = [[name.lower(), text] for name, text in visitor.get("mine", "/headers").json()]
    assert ["x-trailer-user", USERNAME] in fields
    assert not [field for field in fields if field[0] == "cookie"]
    assert RoutedVisitor(trailer, visitor.host).get("mine").status_code == 401
    with pytest.raises(InvalidStatus, match="401"):
        opened(visitor, "mine")
    acts_for_nobody_elses_page(visitor)


def acts_for_nobody_elses_page(visitor: RoutedVisitor) -> None:
    """A neighbour's page sends its visitor's cookie along."""
    elsewhere = {"Origin": f"http://app.{DOMAIN}"}
    there = visitor.address("mine", "/upload")
    posted = visitor.session.post(there, data=b"x", headers=elsewhere, timeout=30)
    assert posted.status_code == 403
    own = {"Origin": f"http://mine.{DOMAIN}"}
    assert visitor.session.post(there, data=b"x", headers=own, timeout=30).status_code == 200
    cookie = visitor.session.cookies.get("trailer_url", domain=f"mine.{DOMAIN}")
    fields = {"Cookie": f"trailer_url={cookie}"}
    with pytest.raises(InvalidStatus, match="403"):
        opened(visitor, "mine", additional_headers=fields, origin=elsewhere["Origin"])
    with opened(visitor, "mine", additional_headers=fields, origin=own["Origin"]) as wire:
        wire.send("own")
        assert wire.recv(timeout=10) == "echo own"


def opened(visitor: RoutedVisitor, subdomain: str, **options: Any) -> Any:
    place = socket.create_connection((visitor.host, 80))
    return connect(f"ws://{subdomain}.{DOMAIN}/ws", sock=place, proxy=None, **options)


def claims_nothing(visitor: RoutedVisitor, subdomain: str) -> None:
    claims = dict.fromkeys((*CLAIMS, "x-remote-user"), "root")
    fields = visitor.get(subdomain, "/headers", headers=claims).json()
    assert not [field for field in fields if "root" in field[1]]


def is_replaced_and_pruned(
    user: User, client: docker.DockerClient, visitor: RoutedVisitor
) -> None:
    first = router_id(client)
    router(user, entrypoint="edge")
    eventually(lambda: router_id(client) not in ("", first), 30, "it was not replaced")
    reaches(visitor, "other")
    router(user, mode="none", managed=False, entrypoint="")
    eventually(lambda: not router_id(client), 30, "the router was not pruned")


KNOCK = f"import socket; socket.create_connection(('127.0.0.1', {APP_PORT}), 5)"
HEALTHY = {
    "test": ["CMD", "python3", "-c", KNOCK],
    "interval": 1,
    "timeout": 20,
    "start_period": 30,
}


def test_a_replace_under_load_fails_nobody_and_neighbours_are_apart(
    user: User, client: docker.DockerClient, engine: PrivateEngine
) -> None:
    visitor = RoutedVisitor(user.trailer, engine.address)
    router(user, mode="traefik-files", managed=True, image=ROUTER)
    fields = {"command": LISTENING, "health_check": HEALTHY, "drain_timeout": 5}
    busy = serving(user, "busy", {"subdomain": "busy", "domain": DOMAIN}, **fields)
    second = {"subdomain": "second", "domain": DOMAIN, "port": APP_PORT, "auth": "public"}
    peer = serving(user, "peer", {"subdomain": "peer", "domain": DOMAIN}, command=LISTENING)
    reaches(visitor, "peer")
    reaches(visitor, "busy")
    is_out_of_reach(client, "trailer-peer", "trailer-busy")
    first = router_id(client)
    with (
        connect(
            f"ws://peer.{DOMAIN}/ws",
            sock=socket.create_connection((engine.address, 80)),
            proxy=None,
        ) as wire,
        Load(engine.address, f"busy.{DOMAIN}") as load,
    ):
        eventually(lambda: load.answered > 50, 30, "no load")
        # A neighbour's URL first: its route is written beside this one's.
        user.patch(f"/workspaces/{peer['id']}/", {"urls": [*peer["urls"], second]})
        reaches(visitor, "second")
        user.patch(f"/workspaces/{busy['id']}/", {"env": {"A": "1"}})
        after = eventually(lambda: replaced(user, busy), 60, "it was not replaced")
        seen = load.answered
        eventually(lambda: load.answered > seen + 50, 30, "no load after the replace")
        wire.send("still")
        assert wire.recv(timeout=20) == "echo still"
    print(f"{load.answered} answered, {load.answered / load.seconds:.0f}/s, failed {load.failed}")
    assert load.failed == []
    assert client.containers.get(after["container_id"]).attrs["Config"]["Env"]
    assert router_id(client) == first, "the router was restarted"
    router(user, mode="none", managed=False)
    eventually(lambda: not router_id(client), 30, "the router was not pruned")
    eventually(lambda: not links(client), 30, "links were left behind")


def replaced(user: User, workspace: Any) -> Any:
    seen = user.get(f"/workspaces/{workspace['id']}/")
    is_new = seen["container_id"] not in ("", workspace["container_id"])
    settled = seen["observed_revision"] == seen["revision"]
    return seen if is_new and settled and seen["status"] == "running" else None


def links(client: docker.DockerClient) -> list[str]:
    names = [str(network.name) for network in client.networks.list()]
    return [name for name in names if name.startswith("trailer.router.")]


def is_out_of_reach(client: docker.DockerClient, one: str, other: str) -> None:
    """Not by address and not by name, though the router reaches both."""
    places = client.containers.get(other).attrs["NetworkSettings"]["Networks"]
    addresses = [place["IPAddress"] for place in places.values()]
    assert len(addresses) == 1
    for there in (*addresses, other.removeprefix("trailer-")):
        code = f"import socket; socket.create_connection(('{there}', {APP_PORT}), 3)"
        tried = client.containers.get(one).exec_run(["python3", "-c", code])
        assert tried.exit_code != 0, f"{one} reaches {there}"


def test_an_operators_own_router_reads_labels(
    user: User, client: docker.DockerClient, engine: PrivateEngine
) -> None:
    visitor = RoutedVisitor(user.trailer, engine.address)
    client.networks.create("edge")
    own: Any = client.containers.run(
        ROUTER,
        [
            *("--providers.docker=true", "--entrypoints.web.address=:80"),
            *("--providers.providersThrottleDuration=100ms", "--log.level=DEBUG"),
        ],
        name="own-router",
        network="edge",
        ports={"80/tcp": 80},
        volumes={str(engine.folder / "d.sock"): {"bind": "/var/run/docker.sock"}},
        detach=True,
    )
    router(user, mode="traefik-labels", network="edge", entrypoint="web")
    workspace = serving(
        user,
        "labelled",
        {"subdomain": "lab", "domain": DOMAIN},
        {"subdomain": "mine", "domain": DOMAIN, "auth": "owner"},
        command=LISTENING,
    )
    eventually(lambda: visitor.get("lab").status_code == 200, 30, "no route from the labels")
    claims_nothing(visitor, "lab")
    signs_in_and_returns(visitor, user.trailer)
    claims_nothing(visitor, "mine")
    assert visitor.get("nobody").status_code == 404, "the labels of its image made a route"
    urls = [{"subdomain": "lab2", "domain": DOMAIN, "port": 8080, "auth": "public"}]
    plan = user.post(f"/workspaces/{workspace['id']}/plan/", {"urls": urls}, status=200)
    assert plan["action"] == "replace"
    user.patch(f"/workspaces/{workspace['id']}/", {"urls": urls})
    eventually(lambda: visitor.get("lab2").status_code == 200, 30, "no new route")
    assert user.wait_for(workspace, "running")["container_id"] != workspace["container_id"]
    own.remove(force=True)
