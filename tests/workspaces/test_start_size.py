"""How much environment and command a workspace may have: what Linux starts a program with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import api_client, make_host, make_image, make_user
from workspaces.models import EnvVar, Workspace
from workspaces.validation.start_size import MOST_START_BYTES

pytestmark = pytest.mark.django_db

LARGE = {f"V{number}": "x" * 60_000 for number in range(40)}
SENTENCE = "Environment and command have 2.3 MiB together"


class Scene:
    def __init__(self) -> None:
        self.owner = make_user()
        self.client = api_client(self.owner)
        self.image = make_image(make_host(), self.owner)
        self.body = {"name": "box", "host": str(self.image.host_id), "image": str(self.image.pk)}

    def create(self, **fields: Any) -> Any:
        return self.client.post("/api/v1/workspaces/", {**self.body, **fields})

    def older(self) -> Workspace:
        """Made before there was a limit."""
        made = self.create().json()
        rows = [EnvVar(workspace_id=made["id"], name=n, value=v) for n, v in LARGE.items()]
        EnvVar.objects.bulk_create(rows)
        return Workspace.objects.get(pk=made["id"])


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"env": LARGE}, "env"),
        ({"secret_env": LARGE}, "secret_env"),
        ({"env": {"A": "x" * 60_000}, "command": [*LARGE.values()]}, "command"),
        ({"health_check": {"test": ["CMD", *LARGE.values()]}}, "health_check"),
    ],
)
def test_what_no_program_can_be_started_with_is_refused(
    fields: dict[str, Any], where: str
) -> None:
    answer = Scene().create(**fields)
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [where]
    assert "started with at most 1 MiB" in answer.json()["message"]


def test_half_of_what_linux_takes_is_accepted() -> None:
    env = {f"V{number}": "x" * 65_000 for number in range(16)}
    assert MOST_START_BYTES - 10_000 < sum(map(len, env.values())) < MOST_START_BYTES
    assert Scene().create(env=env).status_code == 201


def test_an_older_one_over_the_limit_is_refused_only_when_its_environment_is_edited() -> None:
    scene = Scene()
    workspace = scene.older()
    path = f"/api/v1/workspaces/{workspace.pk}/"
    assert scene.client.patch(path, {"cpus": 1}).status_code == 200
    assert scene.client.post(f"{path}redeploy/", {}).status_code == 202
    for change in ({"env": {**LARGE, "ONE": "more"}}, {"command": ["sh"]}):
        answer = scene.client.patch(path, change)
        assert answer.status_code == 400
        assert SENTENCE in answer.json()["fields"]["env"][0]
    assert scene.client.patch(path, {"env": {"A": "b"}}).status_code == 200


def test_a_clone_of_one_over_the_limit_is_refused() -> None:
    scene = Scene()
    workspace = scene.older()
    answer = scene.client.post(f"/api/v1/workspaces/{workspace.pk}/clone/", {"name": "copy"})
    assert answer.status_code == 400
    assert SENTENCE in answer.json()["message"]
