"""Who sees a workspace sees what it is made of, and may do nothing with that elsewhere."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from images.choices import BuildStatus
from images.foreign import must_ask
from images.models import Image
from tests.factories import (
    api_client,
    make_build,
    make_grant,
    make_image,
    make_network,
    make_registry,
    make_secret,
    make_stack,
    make_volume,
    make_workspace,
)
from trailer import policy
from trailer.access.models import Grant, Role
from workspaces.live import live_states
from workspaces.models import Mount, Workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
KINDS = ("image", "volume", "network")
SECRET = "canary-71f00d"


@pytest.fixture
def parts(host: Host, owner: User) -> dict[str, Any]:
    return {
        "image": make_image(
            host,
            owner,
            kind="build",
            dockerfile=f"FROM busybox\nRUN echo {SECRET}\n",
            files=[{"path": "a", "content": SECRET}],
            build_args={"A": SECRET},
            target=SECRET,
        ),
        "volume": make_volume(host, owner),
        "network": make_network(host, owner),
    }


@pytest.fixture
def workspace(host: Host, owner: User, parts: dict[str, Any]) -> Workspace:
    row = make_workspace(host, owner, "box", image=parts["image"])
    Mount.objects.create(workspace=row, volume=parts["volume"], target="/data")
    row.networks.add(parts["network"])
    return row


def url(row: Any) -> str:
    return f"/api/v1/{row._meta.model_name}s/{row.pk}/"


def may(user: User, action: str, row: Any) -> bool:
    """By the predicate and by the filter, which must agree."""
    allowed = policy.allows(user, action, row)
    assert type(row).objects.filter(policy.permitted(action, user), pk=row.pk).exists() == allowed
    return allowed


def made_of(row: Any) -> dict[str, Any]:
    """What of a workspace's fields points at this object."""
    fields: dict[str, dict[str, Any]] = {
        "image": {"image": str(row.pk)},
        "volume": {"mounts": [{"volume": str(row.pk), "target": "/x", "read_only": True}]},
        "network": {"networks": [str(row.pk)]},
    }
    return fields[row._meta.model_name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_viewer_sees_the_parts_and_may_not_use_change_or_share_them(
    kind: str, workspace: Workspace, parts: dict[str, Any], stranger: User
) -> None:
    part, client, browser = parts[kind], api_client(stranger), Client()
    browser.force_login(stranger)
    assert client.get(url(part)).status_code == 404
    assert not may(stranger, f"{kind}.view", part)
    make_grant(workspace, stranger, Role.VIEWER)
    assert may(stranger, f"{kind}.view", part)
    assert client.get(url(part)).json()["name"] == part.name
    assert client.get(f"/api/v1/{kind}s/").json()["count"] == 1
    page = browser.get(f"/{kind}s/{part.pk}/").content.decode()
    assert "data-through" in page
    assert "workspaces/new/?image" not in page
    for action in ("use", "modify", "delete", "share"):
        assert not may(stranger, f"{kind}.{action}", part), action
    assert client.delete(f"{url(part)}?confirm={part.name}").status_code == 403
    assert client.get(f"{url(part)}grants/").status_code == 403


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("role", Role)
def test_nobody_makes_a_workspace_of_what_they_only_see(
    kind: str, role: Role, workspace: Workspace, parts: dict[str, Any], stranger: User, host: Host
) -> None:
    make_grant(workspace, stranger, role)
    own = make_image(host, stranger)
    client = api_client(stranger)
    body = {"name": "mine", "host": str(host.pk), "image": str(own.pk), **made_of(parts[kind])}
    answer = client.post("/api/v1/workspaces/", body)
    assert answer.status_code == 400
    [(field, [sentence])] = answer.json()["fields"].items()
    assert field.split(".")[0] == next(iter(made_of(parts[kind])))
    assert sentence.endswith("or you may not use it.")
    form = Client()
    form.force_login(stranger)
    assert f'value="{parts[kind].pk}"' not in form.get("/workspaces/new/").content.decode()
    make_grant(parts[kind], stranger, Role.VIEWER)
    assert client.post("/api/v1/workspaces/", body).status_code == 201
    assert f'value="{parts[kind].pk}"' in form.get("/workspaces/new/").content.decode()


def test_an_editor_copies_no_workspace_whose_parts_were_not_shared(
    workspace: Workspace, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.EDITOR)
    answer = api_client(stranger).post(f"{url(workspace)}clone/", {"name": "copy"})
    assert answer.status_code == 400
    assert not Workspace.objects.filter(name="copy").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_grant_without_inspect_or_past_its_end_shows_no_parts(
    kind: str, workspace: Workspace, parts: dict[str, Any], stranger: User
) -> None:
    make_grant(workspace, stranger, Role.MANAGER, inspect=False)
    assert not may(stranger, f"{kind}.view", parts[kind])
    Grant.objects.update(inspect=True)
    assert may(stranger, f"{kind}.view", parts[kind])
    Grant.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not may(stranger, f"{kind}.view", parts[kind])
    assert api_client(stranger).get(url(parts[kind])).status_code == 404


@pytest.mark.parametrize("kind", KINDS)
def test_who_sees_a_stack_sees_what_its_services_are_made_of(
    kind: str, workspace: Workspace, parts: dict[str, Any], host: Host, owner: User, stranger: User
) -> None:
    stack = make_stack(host, owner)
    Workspace.objects.filter(pk=workspace.pk).update(stack=stack.pk, service="web")
    make_grant(stack, stranger, Role.VIEWER)
    assert may(stranger, f"{kind}.view", parts[kind])
    assert not may(stranger, f"{kind}.use", parts[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_what_leaves_the_workspace_leaves_their_sight(
    kind: str, workspace: Workspace, parts: dict[str, Any], host: Host, owner: User, stranger: User
) -> None:
    make_grant(workspace, stranger, Role.VIEWER)
    edit = {"image": str(make_image(host, owner).pk), "mounts": [], "networks": []}
    assert api_client(owner).patch(url(workspace), edit).status_code == 200
    assert not may(stranger, f"{kind}.view", parts[kind])


def test_what_an_image_is_made_from_shows_only_to_those_it_is_shared_with(
    workspace: Workspace, parts: dict[str, Any], stranger: User
) -> None:
    image, client, browser = parts["image"], api_client(stranger), Client()
    browser.force_login(stranger)
    make_secret(image, name=SECRET)
    build = make_build(image, status="failed")
    make_grant(workspace, stranger, Role.VIEWER)
    # What a builder prints names the line that it failed at.
    Image.objects.filter(pk=image.pk).update(status="failed", message=f"RUN echo {SECRET} failed")
    shown = client.get(url(image)).json()
    assert (shown["dockerfile"], shown["files"], shown["build_args"]) == ("", [], {})
    assert (shown["registry"], shown["current_build"]) == (None, None)
    assert {"dockerfile", "files", "build_args", "build_secrets"} <= set(shown["hidden_fields"])
    page = f"/images/{image.pk}/"
    addresses = (url(image), "/api/v1/images/")
    pages = (
        *(page, f"{page}?part=facts", f"{page}?part=builds", f"{page}?build={build.pk}"),
        *("/images/", "/images/?part=rows", "/"),
    )
    for address in addresses:
        assert SECRET not in client.get(address).content.decode(), address
    for address in pages:
        answer = browser.get(address)
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode(), address
        assert f"build:{build.pk}" not in answer.content.decode(), address
    assert client.get(f"{url(image)}builds/").status_code == 403
    assert client.get(f"/api/v1/builds/{build.pk}/").status_code == 404
    assert client.get(f"/api/v1/builds/{build.pk}/log/").status_code == 404
    make_grant(image, stranger, Role.VIEWER)
    for address in addresses:
        assert SECRET in client.get(address).content.decode(), address
    assert client.get(url(image)).json()["hidden_fields"] == []
    assert client.get(f"{url(image)}builds/").json()["count"] == 2


@pytest.mark.parametrize("status", BuildStatus)
def test_what_an_image_says_is_told_in_general_to_who_sees_it_through_a_workspace(
    status: BuildStatus, workspace: Workspace, parts: dict[str, Any], owner: User, stranger: User
) -> None:
    image, client, browser = parts["image"], api_client(stranger), Client()
    browser.force_login(stranger)
    make_grant(workspace, stranger, Role.VIEWER)
    Image.objects.filter(pk=image.pk).update(status=status, message=f"RUN echo {SECRET}")
    resource = f"image:{image.pk}"

    def live(user: User) -> str:
        return str(live_states(user, [resource], timezone.now())[resource]["message"])

    told = live(stranger)
    assert SECRET not in told
    assert client.get(url(image)).json()["message"] == told
    assert "message" in client.get(url(image)).json()["hidden_fields"]
    for address in (f"/images/{image.pk}/", "/images/", "/", f"/workspaces/{workspace.pk}/"):
        assert SECRET not in browser.get(address).content.decode(), address
    assert told in browser.get(f"/images/{image.pk}/").content.decode()
    assert SECRET in live(owner)
    make_grant(image, stranger, Role.VIEWER)
    assert SECRET in live(stranger)
    assert SECRET in browser.get(f"/images/{image.pk}/").content.decode()


def test_the_page_of_a_workspace_costs_no_query_per_volume_and_network(
    host: Host, owner: User, stranger: User, workspace: Workspace
) -> None:
    browser = Client()
    browser.force_login(stranger)
    make_grant(workspace, stranger, Role.VIEWER)
    address = f"/workspaces/{workspace.pk}/?part=facts"
    browser.get(address)
    with CaptureQueriesContext(connection) as few:
        browser.get(address)
    for number in range(5):
        volume, network = make_volume(host, owner), make_network(host, owner)
        Mount.objects.create(workspace=workspace, volume=volume, target=f"/data/{number}")
        workspace.networks.add(network)
    with CaptureQueriesContext(connection) as many:
        page = browser.get(address).content.decode()
    assert len(many) == len(few)
    assert f"/volumes/{volume.pk}/" in page
    assert f"/networks/{network.pk}/" in page
    Grant.objects.update(inspect=False)
    page = browser.get(address).content.decode()
    assert f"/networks/{network.pk}/" not in page
    assert network.name in page


def test_a_list_of_parts_costs_no_query_per_row(
    host: Host, owner: User, stranger: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(12):
        make_grant(make_workspace(host, owner), stranger, Role.VIEWER)
    client = api_client(stranger)
    with django_assert_max_num_queries(5):
        assert client.get("/api/v1/images/").json()["count"] == 12


def test_seeing_a_private_image_gives_nobody_its_copy_on_the_host(
    host: Host, owner: User, stranger: User
) -> None:
    registry = make_registry(owner)
    theirs = make_image(host, owner, reference="127.0.0.1:5000/app:1", registry=registry)
    make_grant(make_workspace(host, owner, image=theirs), stranger, Role.VIEWER)
    mine = make_image(host, stranger, reference="127.0.0.1:5000/app:1")
    assert may(stranger, "image.view", theirs)
    assert must_ask(mine, [theirs, mine])
    make_grant(theirs, stranger, Role.VIEWER)
    assert not must_ask(mine, [theirs, mine])
