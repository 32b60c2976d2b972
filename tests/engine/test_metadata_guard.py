"""Containers are kept from a pretended cloud's metadata; the machine itself and others are not."""

from __future__ import annotations

import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from agent.errors import GuardError
from agent.guard import table
from agent.protocol.naming import LABEL_AGENT_ROLE
from agent.protocol.state import HostSettings
from agent.runtime.docker_client import Connections
from agent.runtime.docker_guard import GUARD_NAME, ContainerGuard
from agent.store.document import save_document
from agent.store.identity import Identity
from tests.agent.documents import document
from tests.agent.fake_server import HOST_ID, HOST_KEY, TOKEN, FakeServer
from tests.engine.agent_process import AgentProcess
from tests.engine.cloud_scene import DNS, METADATA, METADATA_6, SECRET, Cloud
from tests.ground.agent_image import ensure_agent_image
from tests.ground.faults import Call, Moment
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.process import run
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy

IDENTITY = Identity(token=TOKEN, host_id=HOST_ID, host_key=HOST_KEY)
CREATE = "POST /containers/create"
START = "POST /containers/{id}/start"
REMOVE = "DELETE /containers/{id}"


@pytest.fixture
def cloud(clean_engine: PrivateEngine) -> Iterator[Cloud]:
    """Beside the clean engine, whose network has no rule of ours before and after."""
    with Cloud(clean_engine) as made:
        made.host.run(table.remove)
        yield made
        made.host.run(table.remove)


class Container:
    """One on a bridge, old when the rule comes."""

    def __init__(self, client: docker.DockerClient, network: str) -> None:
        self._made = client.containers.run(
            BUSYBOX, RUN_UNTIL_STOPPED, detach=True, network=network
        )

    def get(self, url: str) -> tuple[int, str]:
        # The pause: the engine can lose what a command prints that ends at once.
        script = 'wget -q -O - "$0"; code=$?; sleep 0.2; exit $code'
        done: Any = self._made.exec_run(["sh", "-c", script, url])
        return done.exit_code, done.output.decode()


def get(url: str) -> str:
    return requests.get(url, timeout=5).text


def filter_rules() -> list[str]:
    """Docker's own, without their counters."""
    return [line for line in run("iptables-save").splitlines() if not line.startswith(("#", ":"))]


def test_containers_are_refused_at_once_and_the_machine_itself_is_not(
    cloud: Cloud, engine_client: docker.DockerClient
) -> None:
    engine_client.networks.create("lan")
    for container in (Container(engine_client, "bridge"), Container(engine_client, "lan")):
        assert container.get(f"http://{METADATA}/") == (0, SECRET)
        cloud.host.run(table.put)
        code, said = container.get(f"http://{METADATA}/")
        assert code == 1
        assert "Connection refused" in said
        # On Google Cloud names are resolved at the same address.
        assert container.get(f"http://{METADATA}:{DNS}/") == (0, SECRET)
        assert cloud.host.run(get, f"http://{METADATA}/") == SECRET
        cloud.host.run(table.remove)
        assert container.get(f"http://{METADATA}/") == (0, SECRET)


def test_the_same_holds_for_ipv6(cloud: Cloud) -> None:
    url = f"http://[{METADATA_6}]/"
    assert cloud.guest.run(get, url) == SECRET
    cloud.host.run(table.put)
    with pytest.raises(requests.ConnectionError, match="Connection refused"):
        cloud.guest.run(get, url)
    assert cloud.host.run(get, url) == SECRET
    assert cloud.guest.run(get, f"http://[{METADATA_6}]:{DNS}/") == SECRET


def test_the_rule_is_a_table_of_its_own_that_is_there_once_and_can_be_seen_to_be_broken(
    cloud: Cloud,
) -> None:
    before = cloud.host.run(filter_rules)
    assert before
    assert not cloud.host.run(table.is_in_place)
    cloud.host.run(table.put)
    cloud.host.run(table.put)
    assert cloud.host.run(table.is_in_place)
    assert cloud.host.run(filter_rules) == before
    by_hand = [sys.executable, "-m", "agent", "guard"]
    assert cloud.host.run(run, *by_hand) == "blocked\n"
    assert cloud.host.run(run, *by_hand, "off") == "open\n"
    cloud.host.run(table.remove)
    cloud.host.run(table.remove)
    assert not cloud.host.run(table.is_in_place)
    assert cloud.host.run(filter_rules) == before


# --- the agent as a process ----------------------------------------------------------------------


def listeners(pid: int) -> list[str]:
    """Of all programs in the network that the process is in."""
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return [fields[1] for fields in lines if fields[3] == "0A"]


def test_an_agent_on_the_machine_sets_the_rule_without_a_server_and_listens_on_no_port(
    cloud: Cloud, clean_engine: PrivateEngine, tmp_path: Path
) -> None:
    """It works from the last good document, as after a reboot in an outage."""
    save_document(tmp_path, document(images=(), settings=HostSettings(block_metadata=True)))
    through = ["nsenter", "-t", str(clean_engine.pid), "--net", "--uts"]
    nobody = FakeServer()
    for _ in range(2):
        agent = AgentProcess(nobody, clean_engine.url, tmp_path, through=through).start()
        try:
            eventually(
                lambda: cloud.host.run(table.is_in_place), 20, f"no rule:\n{agent.log}", 0.05
            )
            assert listeners(agent.pid) == []
        finally:
            agent.kill()
        # Somebody sets the machine's rules anew; the agent's next start is one of its looks.
        cloud.host.run(table.remove)


def test_an_agent_whose_engine_is_elsewhere_says_so_and_sets_no_rule_where_it_is(
    cloud: Cloud, server: FakeServer, launch: Callable[[], AgentProcess]
) -> None:
    before = table.is_in_place()
    server.settings = HostSettings(heartbeat_interval=1.0, block_metadata=True)
    server.desire()
    agent = launch()

    def told() -> str:
        beats = server.book.heartbeats
        return beats[-1].metadata_message if beats else ""

    message = eventually(told, 20, f"nothing told:\n{agent.log}", 0.05)
    assert "its engine is not in this machine's own network" in message
    assert server.book.heartbeats[-1].metadata_guard == "open"
    assert table.is_in_place() == before
    assert not cloud.host.run(table.is_in_place)


def test_an_agent_that_is_not_root_says_that_this_is_why(tmp_path: Path) -> None:
    """Beside an engine that is: here a listener of the tests. What counts of root are its rights;
    the one to read files stays, wherever the tests lie."""
    path = tmp_path / "engine.sock"
    look = (
        "from agent.guard.local import is_engine_here\nimport platform\n"
        f"print(is_engine_here({{'DOCKER_HOST': 'unix://{path}'}}, platform.node()))"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        rights = ["setpriv", "--bounding-set", "-all,+dac_override", "--inh-caps", "-all"]
        assert run(sys.executable, "-c", look) == "True\n"
        with pytest.raises(RuntimeError, match="it does not run as root"):
            run(*rights, sys.executable, "-c", look)


# --- the agent in a container --------------------------------------------------------------------


class Killed(BaseException):
    """The agent's process is gone; no handler of its own reaches the engine any more."""


class Mortal(Connections):
    is_dead = False

    def run(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_dead:
            raise Killed
        try:
            return super().run(*args, **kwargs)
        finally:
            if self.is_dead:
                raise Killed


@pytest.fixture
def agent_id(clean_engine: PrivateEngine) -> str:
    """A container of the agent's image; it need not run to be looked at."""
    with closing(clean_engine.client(timeout=300)) as client:
        image = ensure_agent_image(client)
        return str(client.containers.create(image, name="trailer-agent").id)


def names(client: docker.DockerClient) -> set[str]:
    return {str(container.name) for container in client.containers.list(all=True)}


def test_an_agent_in_a_container_sets_and_removes_it_by_another_that_does_not_stay(
    cloud: Cloud, engine_client: docker.DockerClient, proxy: DockerApiProxy, agent_id: str
) -> None:
    guard = ContainerGuard(Connections({"DOCKER_HOST": proxy.url}), IDENTITY, own_id=agent_id)
    guard.put()
    assert cloud.host.run(table.is_in_place)
    assert [str(call) for call in proxy.mutating_calls] == [CREATE, START, REMOVE]
    assert names(engine_client) == {"trailer-agent"}
    guard.remove()
    assert not cloud.host.run(table.is_in_place)
    assert names(engine_client) == {"trailer-agent"}


@pytest.mark.parametrize(
    ("call", "moment"),
    [
        (CREATE, Moment.AFTER_EXECUTE),
        (START, Moment.AFTER_EXECUTE),
        (REMOVE, Moment.BEFORE_FORWARD),
        (REMOVE, Moment.AFTER_EXECUTE),
    ],
)
def test_an_agent_killed_at_any_call_leaves_nothing_after_its_next_try(
    cloud: Cloud,
    engine_client: docker.DockerClient,
    proxy: DockerApiProxy,
    agent_id: str,
    call: str,
    moment: Moment,
) -> None:
    dying = Mortal({"DOCKER_HOST": proxy.url})

    def kill(_: Call) -> None:
        dying.is_dead = True

    proxy.kill_point(1, moment, kill, only=call)
    with pytest.raises(Killed):
        ContainerGuard(dying, IDENTITY, own_id=agent_id).put()
    proxy.reset()
    is_left = (call, moment) != (REMOVE, Moment.AFTER_EXECUTE)
    assert (GUARD_NAME in names(engine_client)) == is_left
    ContainerGuard(Connections({"DOCKER_HOST": proxy.url}), IDENTITY, own_id=agent_id).put()
    assert cloud.host.run(table.is_in_place)
    assert names(engine_client) == {"trailer-agent"}


def test_why_it_failed_is_told_in_its_own_words_and_it_is_gone(
    engine_client: docker.DockerClient, clean_engine: PrivateEngine
) -> None:
    failing = ["sh", "-c", "echo This kernel has no nf_tables. >&2; exit 2"]
    made = engine_client.containers.create(BUSYBOX, entrypoint=failing, name="trailer-agent")
    guard = ContainerGuard(
        Connections({"DOCKER_HOST": clean_engine.url}), IDENTITY, own_id=str(made.id)
    )
    with pytest.raises(GuardError, match="This kernel has no nf_tables"):
        guard.put()
    assert names(engine_client) == {"trailer-agent"}


def test_a_stranger_under_its_name_is_left_alone_and_named(
    engine_client: docker.DockerClient, agent_id: str, clean_engine: PrivateEngine
) -> None:
    """An image's author can give it the label, but not the signature."""
    stranger = engine_client.containers.create(
        BUSYBOX, name=GUARD_NAME, labels={LABEL_AGENT_ROLE: "guard"}
    )
    guard = ContainerGuard(
        Connections({"DOCKER_HOST": clean_engine.url}), IDENTITY, own_id=agent_id
    )
    with pytest.raises(GuardError, match=str(stranger.id)[:12]):
        guard.put()
    assert names(engine_client) == {"trailer-agent", GUARD_NAME}
