"""Who gets which page: owners in, strangers 404, anonymous to the sign-in, admins everywhere."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from hosts.models import Network, Volume
from images.models import Image
from tests.factories import (
    make_admin,
    make_grant,
    make_image,
    make_network,
    make_registry,
    make_stack,
    make_user,
    make_volume,
    make_workspace,
)
from trailer.access.models import Role
from workspaces.models import Workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db

PAGES = (
    "/",
    "/workspaces/",
    "/workspaces/new/",
    "/workspaces/{workspace}/",
    "/workspaces/{workspace}/?tab=logs",
    "/workspaces/{workspace}/?tab=terminal",
    "/workspaces/{workspace}/?tab=metrics",
    "/workspaces/{workspace}/?tab=events",
    "/workspaces/{workspace}/?tab=revisions",
    "/workspaces/{workspace}/?tab=settings",
    "/workspaces/{workspace}/?tab=access",
    "/workspaces/{workspace}/?tab=danger",
    "/images/",
    "/images/new/",
    "/images/new/?kind=build",
    "/images/{image}/",
    "/stacks/",
    "/stacks/new/",
    "/stacks/{stack}/",
    "/stacks/{stack}/?tab=history",
    "/stacks/{stack}/?tab=history&sync=1",
    "/stacks/{stack}/?tab=changes",
    "/stacks/{stack}/?tab=settings",
    "/stacks/{stack}/?tab=access",
    "/hosts/",
    "/hosts/{host}/",
    "/hosts/{host}/?tab=workspaces",
    "/hosts/{host}/?tab=images",
    "/search/?q=note",
    "/networks/",
    "/networks/{network}/",
    "/volumes/",
    "/volumes/{volume}/",
    "/registries/",
    "/profile/",
)
ADMIN_PAGES = ("/users/", "/users/?search=x", "/audit/", "/audit/?since=2020-01-01&actor=x")
OWNED = ("{workspace}", "{image}", "{network}", "{volume}", "{stack}")
OWNED_PAGES = tuple(page for page in PAGES if any(kind in page for kind in OWNED))


@pytest.fixture
def ids(host: Host, owner: User) -> dict[str, str]:
    image = make_image(host, owner, "busybox")
    workspace = make_workspace(host, owner, "notebook", image=image)
    network = make_network(host, owner, "backend")
    volume = make_volume(host, owner, "data")
    stack = make_stack(host, owner, "shop")
    make_registry(owner, server="registry.example.com")
    made = {"workspace": workspace, "image": image, "host": host, "network": network}
    return {kind: str(row.pk) for kind, row in (made | {"volume": volume, "stack": stack}).items()}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("page", PAGES)
def test_an_owner_and_an_admin_get_every_page(page: str, ids: dict[str, str], owner: User) -> None:
    for user in (owner, make_admin()):
        answer = signed_in(user).get(page.format(**ids))
        assert answer.status_code == 200
        assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.parametrize("page", PAGES)
def test_whoever_is_not_signed_in_is_led_to_the_sign_in(page: str, ids: dict[str, str]) -> None:
    answer = Client().get(page.format(**ids))
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("page", OWNED_PAGES)
def test_the_object_of_somebody_else_is_not_there(
    page: str, ids: dict[str, str], stranger: User
) -> None:
    client = signed_in(stranger)
    theirs = client.get(page.format(**ids))
    missing = client.get(page.format(**dict.fromkeys(ids, uuid.uuid4())))
    assert (theirs.status_code, missing.status_code) == (404, 404)
    assert theirs.content == missing.content


def test_lists_hold_nothing_of_somebody_else(ids: dict[str, str], stranger: User) -> None:
    client = signed_in(stranger)
    for page, word in (
        ("/", "notebook"),
        ("/workspaces/", "notebook"),
        ("/workspaces/new/", "busybox"),
        ("/images/", "busybox"),
        ("/hosts/" + ids["host"] + "/?tab=workspaces", "notebook"),
        ("/networks/", "backend"),
        ("/volumes/", ">data<"),
        ("/registries/", "robot@registry.example.com"),
    ):
        answer = client.get(page)
        assert answer.status_code == 200
        # Placeholders of inputs may show such words as examples; rows and options may not.
        assert f">{word.strip('><')}<" not in answer.content.decode(), page


@pytest.mark.parametrize("tab", ["cycles", "settings", "access"])
def test_cycles_and_settings_of_a_host_are_for_admins(
    tab: str, ids: dict[str, str], owner: User
) -> None:
    address = f"/hosts/{ids['host']}/?tab={tab}"
    assert f'data-tab="{tab}"' in signed_in(make_admin()).get(address).content.decode()
    shown = signed_in(owner).get(address).content.decode()
    assert 'data-tab="overview"' in shown
    assert "?tab=settings" not in shown
    assert "data-enrol" not in shown


@pytest.mark.parametrize("page", ADMIN_PAGES)
def test_users_and_audit_are_for_admins(page: str, owner: User) -> None:
    assert signed_in(make_admin()).get(page).status_code == 200
    assert signed_in(owner).get(page).status_code == 403
    assert Client().get(page).status_code == 302


@pytest.mark.parametrize(
    ("role", "tabs"),
    [
        (Role.VIEWER, set()),
        (Role.EDITOR, {"settings", "terminal"}),
        (Role.MANAGER, {"settings", "terminal", "access"}),
    ],
)
def test_a_role_decides_which_tabs_of_a_workspace_are_there(
    role: Role, tabs: set[str], ids: dict[str, str], stranger: User
) -> None:
    workspace = Workspace.objects.get(pk=ids["workspace"])
    make_grant(workspace, stranger, role)
    client = signed_in(stranger)
    for tab in ("overview", "events", "settings", "terminal", "access"):
        answer = client.get(f"/workspaces/{workspace.pk}/?tab={tab}")
        shown = tab if tab in tabs | {"overview", "events"} else "overview"
        assert answer.status_code == 200
        assert f'data-tab="{shown}"' in answer.content.decode()
    # The image is somebody else's: seen, and chosen in the form, because it is chosen already.
    if "settings" in tabs:
        form = client.get(f"/workspaces/{workspace.pk}/?tab=settings").content.decode()
        assert f'<option value="{ids["image"]}"' in form
    assert client.get(f"/images/{ids['image']}/").status_code == 200


def test_only_admins_are_led_to_the_admin(owner: User) -> None:
    assert 'href="/admin/"' in signed_in(make_admin()).get("/").content.decode()
    assert 'href="/admin/"' not in signed_in(owner).get("/").content.decode()


def test_pages_take_no_changes(ids: dict[str, str], owner: User) -> None:
    client = signed_in(owner)
    for page in PAGES:
        assert client.post(page.format(**ids)).status_code == 405


def test_signing_in_leads_on_and_a_wrong_password_is_told_in_a_sentence() -> None:
    make_user("olga", password="correct horse")
    client = Client()
    wrong = client.post("/login/", {"username": "olga", "password": "nope"})
    assert wrong.status_code == 200
    assert "do not match an account" in wrong.content.decode()
    assert "nope" not in wrong.content.decode()
    right = client.post(
        "/login/", {"username": "olga", "password": "correct horse", "next": "/images/"}
    )
    assert (right.status_code, right.headers["Location"]) == (302, "/images/")
    assert client.get("/login/").headers["Location"] == "/"


def test_the_sign_in_leads_to_no_other_site() -> None:
    make_user("olga", password="correct horse")
    body = {"username": "olga", "password": "correct horse", "next": "https://evil.example/"}
    assert Client().post("/login/", body).headers["Location"] == "/"


def test_a_part_for_whoever_signed_out_elsewhere_leads_the_whole_page_to_the_sign_in() -> None:
    given = {"HX-Request": "true", "HX-Current-URL": "http://testserver/workspaces/?search=web"}
    answer = Client().get("/workspaces/?part=rows&search=web", headers=given)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/login/?next=/workspaces/%3Fsearch%3Dweb"
    assert "HX-Replace-Url" not in answer.headers
    assert answer.content == b""


def test_signing_out_ends_the_session(owner: User) -> None:
    client = signed_in(owner)
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/").status_code == 302


def test_an_unknown_address_answers_a_page_and_under_the_api_the_api_s_shape() -> None:
    page = Client().get("/nothing/here/")
    assert page.status_code == 404
    assert "There is nothing here" in page.content.decode()
    api = Client().get("/api/v1/nothing/")
    assert api.status_code == 404
    assert api.json()["code"] == "not_found"


@pytest.mark.parametrize("inspect", [True, False])
def test_a_viewer_of_a_workspace_knows_its_image_by_name_and_is_led_to_no_missing_page(
    *, inspect: bool, ids: dict[str, str], stranger: User
) -> None:
    workspace = Workspace.objects.get(pk=ids["workspace"])
    make_grant(workspace, stranger, Role.VIEWER, inspect=inspect)
    client = signed_in(stranger)
    link = f'href="/images/{ids["image"]}/"'
    own = f"/workspaces/{workspace.pk}/"
    for page in ("/workspaces/", "/", f"/hosts/{ids['host']}/?tab=workspaces", own):
        shown = client.get(page).content.decode()
        assert ">busybox<" in shown or page == own
        assert (link in shown) == inspect, page
    assert client.get(f"/images/{ids['image']}/").status_code == (200 if inspect else 404)


@pytest.mark.parametrize("kind", ["image", "volume", "network"])
def test_only_who_may_share_an_object_sees_with_whom_it_is_shared(
    kind: str, ids: dict[str, str], owner: User, stranger: User
) -> None:
    models = {"image": Image, "volume": Volume, "network": Network}
    make_grant(models[kind]._default_manager.get(), stranger, Role.EDITOR)
    address = f"/{kind}s/{ids[kind]}/"
    form = f'data-grants="/api/v1{address}grants/"'
    shown = signed_in(owner).get(address).content.decode()
    assert form in shown
    assert f'value="{stranger.username}"' in shown
    assert form not in signed_in(stranger).get(address).content.decode()
    part = signed_in(stranger).get(f"{address}?part=access", headers={"HX-Request": "true"})
    assert "data-grants" not in part.content.decode()


def test_tabs_that_a_viewer_may_not_use_are_not_offered(
    ids: dict[str, str], stranger: User
) -> None:
    make_grant(Workspace.objects.get(pk=ids["workspace"]), stranger, Role.VIEWER)
    client = signed_in(stranger)
    shown = client.get(f"/workspaces/{ids['workspace']}/?tab=revisions").content.decode()
    assert 'data-tab="revisions"' in shown
    assert "data-rollback=" not in shown
    for tab in ("settings", "access", "danger"):
        assert f"?tab={tab}" not in shown
    assert "?tab=settings" not in client.get(f"/workspaces/{ids['workspace']}/").content.decode()
