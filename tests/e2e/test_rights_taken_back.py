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


class Member(User):
    """The same verbs with the token of somebody who is no administrator."""

    def __init__(self, trailer: RunningTrailer, token: str) -> None:
        super().__init__(trailer)
        self.token = token

    def call(self, method: str, path: str, json: Any = None) -> Any:
        return self.trailer.api(method, path, json=json, token=self.token)


def containers(client: docker.DockerClient) -> dict[str, str]:
    """Names and ids of all that are there."""
    return {found["Names"][0][1:]: found["Id"] for found in client.api.containers(all=True)}


def test_nothing_new_gets_a_volume_whose_grant_is_gone_and_its_owner_is_rid_of_it(
    running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    owner = User(running_trailer)
    host = owner.online_host()
    volume = owner.post("/volumes/", {"name": "data", "host": host["id"]}, status=201)
    image = owner.image()
    mia = Member(running_trailer, made_user(owner, "mia"))
    editor, viewer = ([{"user": "mia", "role": role}] for role in ("editor", "viewer"))
    grants = f"/volumes/{volume['id']}/grants/"
    assert running_trailer.api("PUT", grants, json=editor).ok
    assert running_trailer.api("PUT", f"/images/{image['id']}/grants/", json=viewer).ok
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
    box = owner.wait_for(made.json(), "running")
    address = f"/workspaces/{box['id']}/"
    first = containers(engine_client)[NAME]

    [left] = running_trailer.api("PUT", grants, json=[]).json()
    assert (left["username"], left["still_uses"][0]["name"]) == ("mia", "volrev")

    # What runs goes on, with the sentence beside it.
    def told() -> Any:
        seen = owner.get(address)
        assert seen["status"] == "running"
        return "mia may not use the volume data any more" in seen["message"]

    eventually(told, 30, "the workspace does not say that its volume was taken back")
    assert containers(engine_client)[NAME] == first
    for action in ("redeploy", "start"):
        reply = mia.call("POST", f"{address}{action}/")
        if action == "redeploy":
            assert (reply.status_code, reply.json()["code"]) == (409, "blocked"), reply.text
    assert containers(engine_client)[NAME] == first

    # Healing makes no new one.
    engine_client.containers.get(NAME).remove(force=True)

    def is_down() -> bool:
        seen = owner.get(address)
        return seen["status"] == "error" and "may not use the volume" in seen["message"]

    eventually(is_down, 30, "the lost container is not noticed")
    reply = mia.call("POST", f"{address}start/")
    assert (reply.status_code, reply.json()["code"]) == (409, "blocked"), reply.text
    assert NAME not in containers(engine_client)

    # With the right it comes back by itself, and its owner takes it away for good.
    assert running_trailer.api("PUT", grants, json=editor).ok
    owner.wait_for(box, "running")
    second = containers(engine_client)[NAME]
    answer = owner.post(f"/volumes/{volume['id']}/evict/", {"workspace": box["id"]})
    assert answer["desired_state"] == "stopped"
    owner.wait_for(box, "stopped")
    assert engine_client.containers.get(second).status == "exited"
    reply = mia.call("POST", f"{address}start/")
    assert (reply.status_code, reply.json()["code"]) == (409, "blocked"), reply.text

    owner.delete(f"/volumes/{volume['id']}/?confirm=data")
    assert owner.get(address)["mounts"] == []
    # The engine lets go of the data with the last container that has it.
    assert mia.call("POST", f"{address}start/").status_code == 202
    owner.wait_for(box, "running")
    third = engine_client.containers.get(NAME)
    assert third.id != second
    assert third.attrs["Mounts"] == []

    def is_gone() -> bool:
        return "trailer-data" not in {one.name for one in engine_client.volumes.list()}

    eventually(is_gone, 60, "the deleted volume is still on the engine")
