"""A real engine is not sent to a registry inside, nor by one that is allowed to anywhere else."""

from __future__ import annotations

import ctypes
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.report import RegistryTested
from agent.protocol.state import DesiredRegistryTest, RegistryCredential
from tests.agent.documents import image
from tests.agent.http_scene import Handler, Listener, listening, redirects, says
from tests.engine.agent_inside import AgentInside
from tests.engine.desired_host import DesiredHost
from tests.ground.hostnet import NAMESPACES
from tests.ground.images import BUSYBOX, push
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.registry import LocalRegistry

# All of them lead to this machine, as some program reads them.
INSIDE = (
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1"),
    *("017700000001", "0.0.0.0", "localhost", "LOCALHOST", "LocalHost", "app.localhost"),
    *("[::1]", "[::]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::7f00:1]"),
    *("[2002:7f00:1::]", "127.0.0.2", "127.255.255.254", socket.gethostname()),
)
# Where a registry that is allowed lies: the engine speaks HTTP with all of 127.0.0.0/8.
ALLOWED = "127.0.0.2"
PATIENCE = 60
CLONE_NEWNET = 0x40000000


class Scene:
    def __init__(self, url: str, folder: Path) -> None:
        self.host = DesiredHost()
        self.host.settings(registry_allow=(f"{ALLOWED}/32",))
        self.agent = AgentInside(self.host, url, folder).start()

    def close(self) -> None:
        self.agent.stop()
        self.host.close()

    def pull(self, **refs: str) -> dict[str, tuple[str, str]]:
        """Status and message of each, once all of them ended."""
        with self.host.one_edit():
            for name, ref in refs.items():
                self.host.image(name, ref=ref, done=False)

        def ended() -> dict[str, tuple[str, str]]:
            found = {name: self.host.server.build(f"b-{name}") for name in refs}
            over = {
                name: (build.status, build.message)
                for name, build in found.items()
                if build is not None and build.status in {"failed", "finished"}
            }
            return over if len(over) == len(refs) else {}

        return eventually(ended, PATIENCE, "not all pulls ended")

    def try_credentials(self, *servers: str) -> dict[str, str]:
        """What was found out about each server; empty where the engine was let in."""
        tests = tuple(
            DesiredRegistryTest(
                id=server,
                credential=RegistryCredential(server=server, username="alice", password="word"),
            )
            for server in servers
        )
        self.host.server.desire(registry_tests=tests)

        def told() -> dict[str, str]:
            found = self.host.server.all(RegistryTested)
            answers = {item.test_id: item.message for item in found}
            return answers if set(answers) >= set(servers) else {}

        return eventually(told, PATIENCE, "not all credentials were tried")


@pytest.fixture
def scene(clean_engine: PrivateEngine, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(clean_engine.url, tmp_path)
    yield made
    made.close()


def listener_on(engine: PrivateEngine, address: str, port: int = 0) -> socket.socket:
    """A listening socket in the engine's own network: a socket stays where it was made."""
    made: list[socket.socket] = []
    libc = ctypes.CDLL(None, use_errno=True)

    def make() -> None:
        with (NAMESPACES / engine.host.name).open() as namespace:
            if libc.setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        is_any = address == "::"
        family = socket.AF_INET6 if is_any else socket.AF_INET
        place = (address, port)
        made.append(socket.create_server(place, family=family, dualstack_ipv6=is_any))

    # The thread ends there, and with it its view of the network.
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


@pytest.fixture
def trap(clean_engine: PrivateEngine) -> Iterator[Listener]:
    """On every address of the engine's own machine, and of no other."""
    with listening(says(b"secret"), listener_on(clean_engine, "::")) as found:
        yield found


@contextmanager
def registry_at(address: str, engine: PrivateEngine, handle: Handler) -> Iterator[Listener]:
    """The same one for the agent, which is in another network here, and for the engine."""
    with (
        listening(handle, socket.create_server((address, 0))) as found,
        listening(handle, listener_on(engine, address, found.port)),
    ):
        yield found


def test_the_engine_would_go_there_by_itself(scene: Scene, trap: Listener) -> None:
    """What the others count would be counted."""
    scene.host.settings(registry_allow=None)
    scene.pull(app=f"127.0.0.1:{trap.port}/team/app:1")
    assert trap.connections > 0


def test_no_spelling_of_this_machine_is_pulled_from(scene: Scene, trap: Listener) -> None:
    places = [place for place in INSIDE if place != ALLOWED]
    refs = {f"app-{n}": f"{place}:{trap.port}/team/app:1" for n, place in enumerate(places)}
    for name, (status, message) in scene.pull(**refs).items():
        assert status == "failed", refs[name]
        # An older engine knows no IPv6 address in a reference, not even of an image it has.
        is_unknown = "invalid reference format" in message and "[" in refs[name]
        assert is_unknown or message.startswith("The registry "), (refs[name], message)
        assert "engine said" not in message, (refs[name], message)
    assert trap.connections == 0


def test_no_spelling_of_this_machine_is_signed_in_to(scene: Scene, trap: Listener) -> None:
    places = [place.lower() for place in INSIDE if place != ALLOWED]
    told = scene.try_credentials(*(f"{place}:{trap.port}" for place in places))
    for server, message in told.items():
        assert message.startswith(f"The registry {server} "), message
        assert "could not be asked" not in message
    assert trap.connections == 0


def asks_for_a_token(realm: str) -> Handler:
    return says(b"{}", "401 Unauthorized", f'WWW-Authenticate: Bearer realm="{realm}"')


@pytest.mark.parametrize("how", ["realm", "redirect", "manifest"])
def test_an_allowed_registry_leads_the_engine_nowhere_else(
    how: str, scene: Scene, trap: Listener, clean_engine: PrivateEngine
) -> None:
    place = f"http://127.0.0.1:{trap.port}/secret"

    def handle(held: socket.socket, head: bytes) -> None:
        if how == "realm":
            asks_for_a_token(place)(held, head)
        elif how == "redirect" or b"/manifests/" in head:
            redirects(place)(held, head)
        else:
            says(b"{}")(held, head)

    with registry_at(ALLOWED, clean_engine, handle) as registry:
        server = f"{ALLOWED}:{registry.port}"
        wanted = f"The registry {server} sends those who ask it to 127.0.0.1"
        status, message = scene.pull(app=f"{server}/team/app:1")["app"]
        assert status == "failed"
        assert message.startswith(wanted)
        if how != "manifest":
            assert scene.try_credentials(server)[server].startswith(wanted)
        assert registry.connections > 0
    assert trap.connections == 0


def test_a_registry_at_an_allowed_address_is_pulled_from(
    scene: Scene, engine_client: docker.DockerClient, registry: LocalRegistry
) -> None:
    ref = registry.reference("team/listed")
    push(engine_client, BUSYBOX, ref)
    engine_client.api.remove_image(ref)
    scene.host.settings(registry_allow=("127.0.0.1/32",))
    assert scene.pull(app=ref)["app"] == ("finished", "")


def test_an_image_that_is_there_runs_on_though_its_registry_is_refused(
    scene: Scene, engine_client: docker.DockerClient, registry: LocalRegistry
) -> None:
    ref = registry.reference("team/kept")
    push(engine_client, BUSYBOX, ref)
    scene.host.image("app", ref=ref, update_policy="always")
    scene.host.workspace("web", image="app")

    def runs() -> Any:
        status = scene.host.server.status("w-web")
        return status is not None and status.status == "running"

    eventually(runs, PATIENCE, "the workspace does not run")
    scene.host.images["app"] = image("app", ref=ref, update_policy="always", check=1)
    scene.host.publish()

    def shown() -> Any:
        seen = scene.host.server.image("i-app")
        return seen is not None and "stays as it is" in seen.message and seen.present

    eventually(shown, PATIENCE, "the refusal is not shown")
    assert runs()
