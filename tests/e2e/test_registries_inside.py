"""Registries inside, tried from outside by a member and by an administrator."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent.http_scene import Listener, listening, says
from tests.e2e.scenario import User
from tests.ground.images import BUSYBOX, push
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

    from tests.ground.registry import LocalRegistry
    from tests.ground.server import RunningTrailer

PASSWORD = "a long pass phrase 9"


class Member:
    """One without any right but those that everybody has."""

    def __init__(self, trailer: RunningTrailer) -> None:
        self._trailer = trailer
        body = {"username": "molly", "password": PASSWORD}
        made = trailer.api("POST", "/users/", body)
        assert made.status_code in {201, 400}, made.text
        reply = trailer.session.post(f"{trailer.url}/api/v1/auth/token/", json=body, timeout=30)
        self._token = reply.json()["token"]

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self._trailer.api(method, path, body, token=self._token)

    def pull(self, name: str, reference: str) -> Any:
        host = self.api("GET", "/hosts/").json()["results"][0]["id"]
        body = {"name": name, "host": host, "kind": "pull", "reference": reference}
        return self.api("POST", "/images/", body)

    def ended(self, path: str) -> tuple[str, str]:
        def found() -> Any:
            seen = self.api("GET", path).json()
            return seen if seen["status"] in {"failed", "finished", "accepted"} else None

        seen = eventually(found, 60, f"{path} does not end")
        return seen["status"], seen["message"]


@pytest.fixture
def user(running_trailer: RunningTrailer) -> User:
    made = User(running_trailer)
    made.online_host()
    return made


@pytest.fixture
def member(user: User, running_trailer: RunningTrailer) -> Member:
    return Member(running_trailer)


@pytest.fixture
def trap() -> Iterator[Listener]:
    with listening(says(b"secret")) as found:
        yield found


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::1]", "127.1"])
def test_what_can_be_read_off_a_name_is_refused_at_once(
    host: str, member: Member, trap: Listener
) -> None:
    server = f"{host}:{trap.port}"
    assert member.pull("app", f"{server}/team/app:1").status_code == 400
    assert member.api("POST", "/registries/", {"server": server}).status_code == 400
    assert trap.connections == 0


def test_a_name_that_leads_here_is_refused_by_the_agent(member: Member, trap: Listener) -> None:
    server = f"{socket.gethostname()}:{trap.port}"
    made = member.pull("app", f"{server}/team/app:1")
    assert made.status_code == 201, made.text
    status, message = member.ended(f"/images/{made.json()['id']}/")
    assert status == "failed"
    assert message.startswith(f"The registry {server} leads to ")
    assert "TRAILER_REGISTRY_ALLOW" in message
    stored = member.api("POST", "/registries/", {"server": server, "username": "m"}).json()
    assert member.api("POST", f"/registries/{stored['id']}/test/").status_code == 202
    status, message = member.ended(f"/registries/{stored['id']}/")
    assert status == "failed"
    assert message.startswith(f"The registry {server} leads to ")
    assert trap.connections == 0


def test_what_an_administrator_stores_is_open_to_members_at_once(
    user: User, member: Member, engine_client: docker.DockerClient, registry: LocalRegistry
) -> None:
    reference = registry.reference("team/opened")
    push(engine_client, BUSYBOX, reference)
    engine_client.api.remove_image(reference)
    assert member.pull("app", reference).status_code == 400
    user.post("/registries/", {"server": registry.address}, status=201)
    made = member.pull("app", reference)
    assert made.status_code == 201, made.text
    assert member.ended(f"/images/{made.json()['id']}/") == ("finished", "")
