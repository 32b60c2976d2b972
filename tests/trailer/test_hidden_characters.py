"""Characters that are not shown, or that turn the text around them, in names and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import api_client, make_host, make_image, make_registry, make_stack, make_user
from workspaces.models import Workspace

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db

TURNED = "abc\u202edef"


@pytest.fixture
def admin() -> User:
    return make_user(is_superuser=True, is_staff=True)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("tokens", {"name": TURNED}, "name"),
        ("groups", {"name": "team\u200b"}, "name"),
        ("groups", {"name": "one\ntwo"}, "name"),
        ("volumes", {"name": "v", "kind": "bind", "source": f"/srv/{TURNED}"}, "source"),
        ("volumes", {"name": "v", "kind": "bind", "source": "/srv/data\n"}, "source"),
        (
            "registries",
            {"server": "r.example.com", "username": TURNED, "password": "p"},
            "username",
        ),
    ],
)
def test_they_are_refused_with_the_character_that_is_meant(
    admin: User, path: str, body: dict[str, Any], field: str
) -> None:
    given = body | ({"host": str(make_host().pk)} if path == "volumes" else {})
    answer = api_client(admin).post(f"/api/v1/{path}/", given)
    assert answer.status_code == 400
    assert "U+" in answer.json()["fields"][field][0]


@pytest.mark.parametrize(
    ("field", "value"), [("description", TURNED), ("path", "apps/\u200bweb"), ("branch", TURNED)]
)
def test_a_stack_takes_none_either(admin: User, field: str, value: str) -> None:
    stack = make_stack(owner=admin)
    answer = api_client(admin).patch(f"/api/v1/stacks/{stack.pk}/", {field: value})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


def test_a_description_keeps_its_lines_and_every_language(admin: User) -> None:
    image = make_image(make_host(), admin)
    text = (
        "Zeile eins\n\tZeile zwei \u2013 \u05e9\u05dc\u05d5\u05dd \u200f\U0001f469\u200d\U0001f4bb"
    )
    body = {"name": "box", "host": str(image.host_id), "image": str(image.pk)}
    answer = api_client(admin).post("/api/v1/workspaces/", {**body, "description": text})
    assert answer.status_code == 201
    assert Workspace.objects.get(name="box").description == text


def test_an_older_name_does_not_stand_in_the_way_of_another_edit(admin: User) -> None:
    registry = make_registry(admin, server="r.example.com", username=TURNED)
    path = f"/api/v1/registries/{registry.pk}/"
    assert api_client(admin).patch(path, {"password": "new"}).status_code == 200
    image = make_image(make_host(), admin, kind="build", dockerfile="FROM a:1", reference="")
    image.files = [{"path": "old\n", "content": ""}]
    image.save()
    path = f"/api/v1/images/{image.pk}/"
    assert api_client(admin).patch(path, {"name": "renamed"}).status_code == 200
    refused = api_client(admin).patch(path, {"dockerfile": "FROM a:2"})
    assert list(refused.json()["fields"]) == ["files.0.path"]
