"""What others brought onto a host is not handed out by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.naming import build_ref
from images.models import Image
from tests.factories import api_client, make_grant, make_image, make_registry, make_stack
from trailer.access.models import Role
from trailer.errors import Invalid
from workspaces.control.compile import host_state
from workspaces.stacks.sync import places
from workspaces.stacks.sync.vouching import Vouched

if TYPE_CHECKING:
    from agent.protocol.state import DesiredImage
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"
PRIVATE = "registry.example.com/private:1"


@pytest.fixture
def built(host: Host, owner: User) -> str:
    return build_ref(str(make_image(host, owner, kind="build").pk))


def bodies(ref: str) -> list[tuple[str, dict[str, Any]]]:
    build = {"kind": "build", "dockerfile": "FROM busybox"}
    return [
        ("reference", {"kind": "pull", "reference": ref}),
        ("reference", {"kind": "pull", "reference": f"docker.io/{ref}"}),
        ("reference", {**build, "reference": ref, "push": True}),
        ("dockerfile", {**build, "dockerfile": f"FROM {ref}"}),
        ("dockerfile", {**build, "dockerfile": f"FROM busybox\nCOPY --from={ref} / /x"}),
        ("dockerfile", {**build, "dockerfile": "ARG B\nFROM $B", "build_args": {"B": ref}}),
        ("dockerfile", {**build, "dockerfile": "FROM 4f"}),
    ]


@pytest.mark.parametrize("number", range(7))
def test_anothers_build_is_neither_pulled_nor_built_upon_nor_pushed_over(
    number: int, host: Host, stranger: User, built: str
) -> None:
    field, body = bodies(built)[number]
    client = api_client(stranger)
    answer = client.post(URL, {"name": "mine", "host": str(host.pk), **body})
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == [field]
    mine = make_image(host, stranger, kind=body["kind"])
    edit = {name: value for name, value in body.items() if name != "kind"}
    assert client.patch(f"{URL}{mine.pk}/", edit).status_code == 400


@pytest.mark.parametrize("length", [64, 12, 1])
def test_anothers_image_is_not_had_by_its_id(host: Host, stranger: User, length: int) -> None:
    theirs = make_image(host)
    ref = theirs.engine_id[: len("sha256:") + length]
    client = api_client(stranger)
    body = {"name": "mine", "host": str(host.pk), "kind": "pull"}
    for spelling in (ref, f"library/{ref}", f"docker.io/{ref}", f"index.docker.io/library/{ref}"):
        answer = client.post(URL, {**body, "reference": spelling})
        assert (answer.status_code, list(answer.json()["fields"])) == (400, ["reference"])
    bare = ref.removeprefix("sha256:")
    answer = client.post(URL, {**body, "reference": bare})
    if length == 64:
        assert answer.status_code == 400
    else:
        # With its tag it is a name and nothing else to an engine.
        image = Image.objects.get(pk=answer.json()["id"])
        assert desired(host, image).ref == f"{bare}:latest"


def test_a_stack_is_no_way_around(host: Host, stranger: User, built: str) -> None:
    stack = make_stack(host, stranger)
    with pytest.raises(Invalid):
        places.images_of(Vouched(stack, stranger), {(built, "if_missing")})


def test_an_older_image_with_such_a_base_can_still_be_renamed(
    host: Host, stranger: User, built: str
) -> None:
    mine = make_image(host, stranger, kind="build", dockerfile=f"FROM {built}")
    answer = api_client(stranger).patch(f"{URL}{mine.pk}/", {"name": "other"})
    assert answer.status_code == 200


def desired(host: Host, image: Image) -> DesiredImage:
    return next(item for item in host_state(host).images if item.id == str(image.pk))


def is_forced(host: Host, image: Image) -> bool:
    build = desired(host, image).build
    assert build is not None
    return build.force


def test_what_somebody_fetched_with_a_credential_is_fetched_anew_for_others(
    host: Host, owner: User, stranger: User
) -> None:
    theirs = make_image(host, owner, reference=PRIVATE, registry=make_registry(owner))
    mine = make_image(host, stranger, reference=PRIVATE, status="pending")
    public = make_image(host, stranger, reference="busybox:1", status="pending")
    assert is_forced(host, mine)
    assert not is_forced(host, public)
    assert not is_forced(host, theirs)
    make_grant(theirs, stranger, Role.VIEWER)
    assert not is_forced(host, mine)


@pytest.mark.parametrize(
    ("dockerfile", "pulls"),
    [
        (f"FROM {PRIVATE}", True),
        (f"FROM busybox\nCOPY --from={PRIVATE} / /x", True),
        ("FROM registry.example.com/private@sha256:" + "4f" * 32, True),
        ("FROM busybox", False),
    ],
)
def test_a_build_upon_it_asks_the_registry_too(
    dockerfile: str, pulls: bool, host: Host, owner: User, stranger: User
) -> None:
    make_image(host, owner, reference=PRIVATE, registry=make_registry(owner))
    mine = make_image(host, stranger, kind="build", dockerfile=dockerfile, status="pending")
    assert desired(host, mine).pull_base is pulls


def test_its_owner_builds_upon_what_is_there(host: Host, owner: User) -> None:
    make_image(host, owner, reference=PRIVATE, registry=make_registry(owner))
    mine = make_image(host, owner, kind="build", dockerfile=f"FROM {PRIVATE}", status="pending")
    assert not desired(host, mine).pull_base
