"""Who may copy a workspace's files by a snapshot or a clone, and whose the snapshot then is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from images.models import Image
from tests.factories import (
    api_client,
    make_grant,
    make_group,
    make_image,
    make_stack,
    make_user,
)
from tests.workspaces.scene import URL, Scene, observe
from trailer import policy
from trailer.access.models import Capability, Grant, HostCapability, Quota, Role
from workspaces.models import Workspace
from workspaces.selectors import workspace_get
from workspaces.services import workspace_delete, workspace_transfer

if TYPE_CHECKING:
    from trailer.accounts.models import User

IMAGES = "/api/v1/images/"


@pytest.fixture
def running(scene: Scene) -> Workspace:
    workspace = scene.create()
    observe(workspace, "running")
    return workspace_get(workspace.pk)


@pytest.fixture
def editor(scene: Scene, running: Workspace) -> User:
    """An editor who may do everything with the workspace, and use its image."""
    make_grant(running, scene.stranger, Role.EDITOR)
    make_grant(scene.image, scene.stranger, Role.VIEWER)
    return scene.stranger


def act(actor: User, workspace: Workspace, action: str, **body: Any) -> Any:
    return api_client(actor).post(f"{URL}{workspace.pk}/{action}/", body)


def taken(actor: User, workspace: Workspace, name: str = "saved") -> Image:
    answer = act(actor, workspace, "snapshot", name=name)
    assert answer.status_code == 202, answer.content
    return Image.objects.get(name=name)


def finished(image: Image) -> Image:
    image.builds.update(status="finished", finished_at=timezone.now())
    Image.objects.filter(pk=image.pk).update(status="finished", engine_id="sha256:1")
    return Image.objects.get(pk=image.pk)


def failed(image: Image) -> Image:
    image.builds.update(status="failed", finished_at=timezone.now())
    Image.objects.filter(pk=image.pk).update(status="failed")
    return Image.objects.get(pk=image.pk)


def may_use(actor: User, image: Image) -> bool:
    """By the predicate, by the queryset, and by the API: they must agree."""
    image = Image.objects.get(pk=image.pk)
    answers = {
        policy.allows(actor, "image.use", image),
        Image.objects.usable_by(actor).filter(pk=image.pk).exists(),
        policy.allows(actor, "image.use", Image.objects.all().with_role(actor).get(pk=image.pk)),  # type: ignore[attr-defined]
        Image.objects.visible_to(actor).filter(pk=image.pk).exists(),
        api_client(actor).get(f"{IMAGES}{image.pk}/").status_code == 200,
        any(build for build in image.builds.model.objects.visible_to(actor).filter(image=image)),
    }
    assert len(answers) == 1, answers
    return answers.pop()


@pytest.mark.parametrize("rights", [["inspect"], ["logs", "inspect"]])
@pytest.mark.parametrize("action", ["snapshot", "clone"])
@pytest.mark.parametrize("role", ["editor", "manager"])
def test_without_the_right_terminal_nothing_copies_the_files(
    scene: Scene, running: Workspace, editor: User, action: str, rights: list[str], role: str
) -> None:
    entries = [{"user": editor.username, "role": role, "rights": rights}]
    assert scene.client().put(f"{URL}{running.pk}/grants/", entries).status_code == 200
    answer = act(editor, running, action, name="copy")
    assert answer.status_code == 403
    assert "show all its files" in answer.json()["message"]
    assert not Image.objects.filter(kind="snapshot").exists()
    assert Workspace.objects.count() == 1
    client = api_client(editor)
    [listed] = client.get(URL).json()["results"]
    shown = client.get(f"{URL}{running.pk}/").json()["allowed_actions"]
    assert not {"snapshot", "clone"} & {*shown, *listed["allowed_actions"]}
    assert {"stop", "redeploy"} <= set(shown)


def test_the_page_offers_no_copy_without_the_right_terminal(
    running: Workspace, editor: User
) -> None:
    browser = Client()
    browser.force_login(editor)

    def buttons() -> dict[str, bool]:
        html = browser.get(f"/workspaces/{running.pk}/").content.decode()
        found = {}
        for name in ("snapshot", "clone", "redeploy"):
            at = html.index(f'data-action="{name}"')
            found[name] = " disabled" not in html[html.rindex("<button", 0, at) :].split(">")[0]
        return found

    assert buttons() == {"snapshot": True, "clone": True, "redeploy": True}
    Grant.objects.filter(kind="workspace").update(terminal=False)
    assert buttons() == {"snapshot": False, "clone": False, "redeploy": True}


def test_a_stack_that_withholds_the_terminal_withholds_copies_of_its_services(
    scene: Scene, running: Workspace
) -> None:
    stack = make_stack(scene.host, scene.owner)
    Workspace.objects.filter(pk=running.pk).update(stack=stack.pk, service="web")
    make_grant(stack, scene.stranger, Role.EDITOR, terminal=False)
    for action in ("snapshot", "clone"):
        assert act(scene.stranger, running, action, name="copy").status_code == 403
    Grant.objects.update(terminal=True)
    image = taken(scene.stranger, running)
    assert (image.owner, may_use(scene.stranger, image)) == (scene.owner, True)


def test_another_grant_may_bring_the_terminal(
    scene: Scene, running: Workspace, editor: User
) -> None:
    Grant.objects.filter(kind="workspace").update(terminal=False)
    make_grant(running, make_group(editor), Role.VIEWER)
    assert act(editor, running, "snapshot", name="copy").status_code == 403
    make_grant(running, make_group(editor), Role.EDITOR)
    assert act(editor, running, "snapshot", name="copy").status_code == 202


@pytest.mark.parametrize("who", ["owner", "admin", "stranger"])
def test_a_snapshot_belongs_to_the_owner_of_the_workspace(
    scene: Scene, running: Workspace, editor: User, who: str
) -> None:
    actor = getattr(scene, who)
    image = taken(actor, running)
    assert (image.owner, image.made_by) == (scene.owner, actor)
    assert not Grant.objects.filter(kind="image", object_id=image.pk).exists()
    assert may_use(scene.owner, image)


def test_it_counts_on_the_owners_quota_which_is_checked_first(
    scene: Scene, running: Workspace, editor: User
) -> None:
    make_image(scene.host, scene.owner, "large", size_bytes=5 * 1024**3)
    Quota.objects.create(user=scene.owner, disk_bytes=5 * 1024**3)
    answer = act(editor, running, "snapshot", name="base")
    assert (answer.status_code, answer.json()["code"]) == (400, "quota_exceeded")
    assert "The quota of owner" in answer.json()["message"]
    assert not Image.objects.filter(kind="snapshot").exists()
    Quota.objects.update(disk_bytes=6 * 1024**3)
    # The editor's own quota is not asked.
    Quota.objects.create(user=editor, disk_bytes=0)
    assert act(editor, running, "snapshot", name="saved").status_code == 202


def test_its_maker_uses_it_as_long_as_they_may_copy_the_workspace(
    scene: Scene, running: Workspace, editor: User
) -> None:
    image = finished(taken(editor, running))
    assert may_use(editor, image)
    body = scene.body(name="second", image=str(image.pk))
    assert api_client(editor).post(URL, body).status_code == 201
    grant = Grant.objects.filter(kind="workspace")
    for change in ({"terminal": False}, {"role": Role.VIEWER}, {"expires_at": timezone.now()}):
        before = grant.values(*change)[0]
        grant.update(**change)
        assert not Image.objects.usable_by(editor).filter(pk=image.pk).exists()
        assert not policy.allows(editor, "image.use", image)
        answer = api_client(editor).post(URL, scene.body(name="third", image=str(image.pk)))
        assert answer.status_code == 400
        assert "no such image, or you may not use it" in answer.json()["message"]
        grant.update(**before)
        assert policy.allows(editor, "image.use", image)
    Workspace.objects.filter(name="second").delete()
    grant.delete()
    assert not may_use(editor, image)


def test_its_maker_cancels_it_and_tries_it_again(
    scene: Scene, running: Workspace, editor: User
) -> None:
    image = taken(editor, running)
    client = api_client(editor)
    assert client.post(f"{IMAGES}{image.pk}/cancel/").status_code == 202
    failed(image)
    shown = client.get(f"{IMAGES}{image.pk}/").json()
    assert shown["allowed_actions"] == ["build"]
    assert client.delete(f"{IMAGES}{image.pk}/").status_code == 403
    assert client.post(f"{IMAGES}{image.pk}/build/").status_code == 202
    failed(image)
    Grant.objects.filter(kind="workspace").update(terminal=False)
    assert client.post(f"{IMAGES}{image.pk}/build/").status_code == 404


def test_another_editor_does_not_use_what_the_maker_took(
    scene: Scene, running: Workspace, editor: User
) -> None:
    other = make_user("other")
    make_grant(running, other, Role.MANAGER)
    image = taken(editor, running)
    assert not may_use(other, image)
    # The owner's own snapshots hold what was there before others came.
    own = taken_after(scene.owner, running, image)
    assert not may_use(editor, own)


def taken_after(actor: User, workspace: Workspace, before: Image) -> Image:
    finished(before)
    return taken(actor, workspace, "later")


def test_a_retry_takes_the_right_terminal(scene: Scene, running: Workspace, editor: User) -> None:
    image = failed(taken(scene.owner, running))
    make_grant(image, editor, Role.EDITOR)
    Grant.objects.filter(kind="workspace").update(terminal=False)
    client = api_client(editor)
    assert client.get(f"{IMAGES}{image.pk}/").json()["allowed_actions"] == []
    answer = client.post(f"{IMAGES}{image.pk}/build/")
    assert answer.status_code == 403
    assert image.builds.count() == 1
    Grant.objects.filter(kind="workspace").update(terminal=True)
    assert client.get(f"{IMAGES}{image.pk}/").json()["allowed_actions"] == ["build"]
    assert client.post(f"{IMAGES}{image.pk}/build/").status_code == 202


def test_an_older_snapshot_of_somebody_else_is_not_made_anew(
    scene: Scene, running: Workspace, editor: User
) -> None:
    """It would be an editor's own again, as it was before snapshots were the owner's."""
    image = make_image(
        scene.host, editor, kind="snapshot", status="failed", source_workspace=running.pk
    )
    answer = api_client(editor).post(f"{IMAGES}{image.pk}/build/")
    assert answer.status_code == 409
    assert "belongs to somebody else than the workspace" in answer.json()["message"]
    assert image.builds.count() == 1


def test_a_workspace_that_is_handed_over_takes_no_more_snapshots_for_its_former_owner(
    scene: Scene, running: Workspace, editor: User
) -> None:
    image = taken(scene.owner, running)
    image.builds.update(status="building")
    workspace_transfer(actor=scene.owner, workspace=running, owner="stranger")
    assert image.builds.get().cancel_requested
    failed(image)
    answer = scene.client().post(f"{IMAGES}{image.pk}/build/")
    assert (answer.status_code, image.builds.count()) == (409, 1)
    later = taken_after(scene.owner, workspace_get(running.pk), image)
    assert later.owner == scene.stranger


def test_with_the_workspace_goes_the_makers_use(
    scene: Scene, running: Workspace, editor: User
) -> None:
    image = finished(taken(editor, running))
    workspace_delete(actor=scene.owner, workspace=running)
    assert not may_use(editor, image)
    assert may_use(scene.owner, image)


def test_neither_who_takes_it_nor_its_owner_gets_an_image_where_they_may_have_none(
    scene: Scene, running: Workspace, editor: User
) -> None:
    with override_settings(TRAILER_OPEN_HOSTS=False):
        answer = act(editor, running, "snapshot", name="saved")
        assert (answer.status_code, "You may not create" in answer.json()["message"]) == (
            403,
            True,
        )
        HostCapability.objects.create(
            user=editor, host_id=scene.host.pk, capability=Capability.IMAGES
        )
        answer = act(editor, running, "snapshot", name="saved")
        assert answer.status_code == 403
        assert "owner, to whom the snapshot would belong" in answer.json()["message"]
        assert taken(scene.admin, running).owner == scene.owner


def test_a_rollback_to_a_snapshot_takes_the_use_of_it(
    scene: Scene, running: Workspace, editor: User
) -> None:
    image = finished(taken(scene.owner, running))
    url = f"{URL}{running.pk}/"
    for back in (image, scene.image):
        assert scene.client().patch(url, {"image": str(back.pk)}).status_code == 200
    answer = api_client(editor).post(f"{url}rollback/", {"revision": 2})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["image"])


def test_snapshots_of_others_are_listed_to_owner_and_administrator_and_stay_whose_they_are(
    scene: Scene, running: Workspace, editor: User
) -> None:
    old = make_image(
        scene.host, editor, "theirs", kind="snapshot", source_workspace=running.pk, size_bytes=7
    )
    own = taken(editor, running)
    url = f"{URL}{running.pk}/snapshots/"
    for person in (scene.owner, scene.admin):
        rows = {row["name"]: row for row in api_client(person).get(url).json()["results"]}
        assert set(rows) == {"theirs", "saved"}
        theirs = {name: rows["theirs"][name] for name in ("owner", "made_by", "is_others")}
        assert theirs == {"owner": "stranger", "made_by": None, "is_others": True}
        mine = {name: rows["saved"][name] for name in ("owner", "made_by", "is_others")}
        assert mine == {"owner": "owner", "made_by": "stranger", "is_others": False}
    assert api_client(editor).get(url).status_code == 403
    assert scene.client().get(f"{IMAGES}{old.pk}/").status_code == 404
    assert Image.objects.get(pk=old.pk).owner == editor
    for person, sees in ((scene.owner, True), (scene.admin, True), (editor, False)):
        browser = Client()
        browser.force_login(person)
        html = browser.get(f"/workspaces/{running.pk}/").content.decode()
        told = html.partition("data-others-snapshots")[2].partition("</div>")[0]
        assert ("theirs" in told) is sees
        assert "saved" not in told
        assert (str(own.pk) in html) is True


def test_a_list_of_own_snapshots_takes_the_same_queries(running: Workspace, editor: User) -> None:
    client = api_client(editor)
    failed(taken(editor, running, "first"))

    def listed() -> int:
        with CaptureQueriesContext(connection) as queries:
            rows = client.get(f"{IMAGES}?kind=snapshot").json()["results"]
        assert {tuple(row["allowed_actions"]) for row in rows} == {("build",)}
        return len(queries)

    # The first request of a token also notes when it was used.
    listed()
    one = listed()
    for number in range(5):
        failed(taken(editor, running, f"more-{number}"))
    assert listed() == one
