"""A grant is taken back while a workspace mounts the volume: server, agent and a real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.scenario import User
from tests.e2e.terminal_scene import made_user
from tests.ground.images import RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.server import RunningTrailer

NAME = "trailer-volrev"
WHY = "mia may not use the volume data any more"
EDITOR = [{"user": "mia", "role": "editor"}]


class Member(User):
    """The same verbs with the token of somebody who is no administrator."""

    def __init__(self, trailer: RunningTrailer, token: str) -> None:
        super().__init__(trailer)
        self.token = token

    def call(self, method: str, path: str, json: Any = None) -> Any:
        return self.trailer.api(method, path, json=json, token=self.token)

    def is_blocked(self, path: str) -> None:
        reply = self.call("POST", path)
        assert (reply.status_code, reply.json()["code"]) == (409, "blocked"), reply.text


def containers(client: docker.DockerClient) -> dict[str, str]:
    """Names and ids of all that are there."""
    return {found["Names"][0][1:]: found["Id"] for found in client.api.containers(all=True)}


def shared_box(owner: User, mia: Member) -> tuple[Any, Any]:
    """A volume of the administrator's, and mia's running workspace that mounts it."""
    host = owner.online_host()
    volume = owner.post("/volumes/", {"name": "data", "host": host["id"]}, status=201)
    image = owner.image()
    viewer = [{"user": "mia", "role": "viewer"}]
    assert owner.trailer.api("PUT", f"/volumes/{volume['id']}/grants/", json=EDITOR).ok
    assert owner.trailer.api("PUT", f"/images/{image['id']}/grants/", json=viewer).ok
    body = {
        "name": "volrev",
        "host": host["id"],
        "image": image["id"],
        "command": RUN_UNTIL_STOPPED,
        "drain_timeout": 2,
        "mounts": [{"volume": volume["id"], "target": "/data"}],
    }
    made = mia.call("POST", "/workspaces/", body)
    assert made.status_code == 201, made.text
    return volume, owner.wait_for(made.json(), "running")


def test_nothing_new_gets_a_volume_whose_grant_is_gone_and_its_owner_is_rid_of_it(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    owner = User(running_trailer)
    mia = Member(running_trailer, made_user(owner, "mia"))
    volume, box = shared_box(owner, mia)
    address, grants = f"/workspaces/{box['id']}/", f"/volumes/{volume['id']}/grants/"
    first = containers(engine_client)[NAME]

    def says(status: str) -> bool:
        seen = owner.get(address)
        return seen["status"] == status and WHY in seen["message"]

    # What runs goes on, with the sentence beside it.
    [left] = running_trailer.api("PUT", grants, json=[]).json()
    assert (left["username"], left["still_uses"][0]["name"]) == ("mia", "volrev")
    eventually(lambda: says("running"), 30, "it does not say that its volume was taken back")
    mia.is_blocked(f"{address}redeploy/")
    assert containers(engine_client)[NAME] == first
    # Healing makes no new one.
    engine_client.containers.get(NAME).remove(force=True)
    eventually(lambda: says("error"), 30, "the lost container is not noticed")
    mia.is_blocked(f"{address}start/")
    assert NAME not in containers(engine_client)
    # With the right it comes back by itself, and its owner takes it away for good.
    assert running_trailer.api("PUT", grants, json=EDITOR).ok
    owner.wait_for(box, "running")
    second = containers(engine_client)[NAME]
    owner.post(f"/volumes/{volume['id']}/evict/", {"workspace": box["id"]})
    owner.wait_for(box, "stopped")
    assert engine_client.containers.get(second).status == "exited"
    mia.is_blocked(f"{address}start/")
    owner.delete(f"/volumes/{volume['id']}/?confirm=data")
    # The engine lets go of the data with the last container that has it.
    assert mia.call("POST", f"{address}start/").status_code == 202
    owner.wait_for(box, "running")
    assert engine_client.containers.get(NAME).attrs["Mounts"] == []

    def is_gone() -> bool:
        return "trailer-data" not in {one.name for one in engine_client.volumes.list()}

    eventually(is_gone, 60, "the deleted volume is still on the engine")
