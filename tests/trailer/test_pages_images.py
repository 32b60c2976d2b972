"""Pages of images and of what is made from them: work under way, history, updates, snapshots."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from images.choices import BuildTrigger
from tests.factories import make_build, make_image, make_workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from images.models import Image
    from trailer.accounts.models import User
    from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

OLD, NEW = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def part(client: Client, address: str) -> str:
    answer = client.get(address, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    html = answer.content.decode()
    assert "<html" not in html
    return html


def button(html: str, action: str) -> str:
    [found] = re.findall(rf'<button[^>]*data-action="{action}"[^>]*>', html)
    return str(found)


def snapshot_of(workspace: Workspace, owner: User, name: str = "", **fields: Any) -> Image:
    return make_image(
        workspace.host,
        owner,
        name,
        kind="snapshot",
        source_workspace=workspace.pk,
        source_image=workspace.image_id,
        **fields,
    )


def test_work_under_way_is_shown_with_its_percentage_and_what_it_is_at(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, status="building", progress=43, message="Pulling 2 layers")
    html = page(client, f"/images/{image.pk}/")
    work = html.split(f'data-busy-for="image:{image.pk}"')[1].split("</section>")[0]
    assert not work.startswith(" hidden")
    assert "Pulling 2 layers" in work
    assert "43 %" in work
    assert re.search(r'<progress[^>]* value="43"', work)
    assert " disabled" not in button(html, "cancel")
    assert " disabled" in button(html, "build")


def test_a_finished_image_shows_no_work_and_can_be_made_again(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner)
    html = page(client, f"/images/{image.pk}/")
    assert f'data-busy-for="image:{image.pk}" hidden' in html
    assert " disabled" in button(html, "cancel")
    assert " disabled" not in button(html, "build")
    assert f'href="/workspaces/new/?image={image.pk}"' in html


def test_a_cancel_that_the_host_has_not_confirmed_is_told(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, kind="build", status="building")
    address = f"/images/{image.pk}/?part=notices"
    assert "data-cancelling" not in part(client, address)
    image.builds.update(cancel_requested=True)
    assert "Cancelling build 1." in part(client, address)
    image.builds.update(status="cancelled", finished_at=timezone.now())
    assert "data-cancelling" not in part(client, address)


def test_the_history_tells_why_who_how_long_and_how_large(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, kind="build", status="failed")
    begun = timezone.now() - timedelta(minutes=5)
    second = make_build(
        image,
        status="finished",
        trigger=BuildTrigger.REQUESTED,
        actor=owner,
        started_at=begun,
        finished_at=begun + timedelta(seconds=83),
        size_bytes=50 * 1024**2,
        digest=OLD,
    )
    third = make_build(image, status="building", trigger=BuildTrigger.CHANGED)
    html = part(client, f"/images/{image.pk}/?part=builds")
    rows = html.split("<tr ")[1:]
    assert [re.search(r"cell-short\">(\d+)<", row)[1] for row in rows] == ["3", "2", "1"]  # type: ignore[index]
    for words in ("Requested", "by olga", "1 min 23 s", "50 MiB", "Finished", "aaaaaaaaaaaa"):
        assert words in rows[1]
    assert f'data-show-build="{second.pk}"' in rows[1]
    assert "data-elapsed" in rows[0]
    assert f'data-show-build="{third.pk}"' in rows[0]
    assert "data-newest" in rows[0]
    assert "data-newest" not in rows[1]


def test_an_older_build_can_be_chosen_and_a_foreign_one_can_not(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner)
    first = image.builds.get()
    newest = make_build(image, status="failed", log_bytes=77)
    foreign = make_image(host, owner).builds.get()
    html = page(client, f"/images/{image.pk}/?build={first.pk}")
    assert f'data-log="build:{first.pk}"' in html
    assert "data-newest-of" not in html
    for wanted in (foreign.pk, "nonsense", ""):
        html = page(client, f"/images/{image.pk}/?build={wanted}")
        assert f'data-log="build:{newest.pk}" data-newest-of' in html
        assert f'href="/api/v1/builds/{newest.pk}/log/" download=' in html


def test_a_newer_image_in_the_registry_is_told_with_a_way_to_pull_it(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, update_policy="always", digest=OLD, available_digest=NEW)
    html = page(client, f"/images/{image.pk}/")
    notice = html.split("data-update-available")[1].split("</div>")[0]
    assert "bbbbbbbbbbbb" in notice
    assert 'data-press="build"' in notice
    assert " disabled" not in button(html, "check")
    assert "update available" in page(client, "/images/")


def test_no_update_is_told_of_what_the_host_has(client: Client, host: Host, owner: User) -> None:
    image = make_image(host, owner, update_policy="always", digest=OLD, available_digest=OLD)
    html = page(client, f"/images/{image.pk}/")
    assert "data-update-available" not in html
    assert "The host has what the registry has." in html
    assert "update available" not in page(client, "/images/")


def test_an_image_that_is_never_compared_says_so_and_offers_no_check(
    client: Client, host: Host, owner: User
) -> None:
    pinned = f"busybox@{OLD}"
    for fields, words in (
        ({"update_policy": "if_missing"}, "The registry is never looked at"),
        ({"update_policy": "always", "reference": pinned}, "which never moves"),
    ):
        html = page(client, f"/images/{make_image(host, owner, **fields).pk}/")
        assert words in html
        assert 'data-action="check"' not in html


def test_a_failed_look_at_the_registry_is_told_without_alarm(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(
        host, owner, update_policy="always", message="The registry does not answer."
    )
    html = page(client, f"/images/{image.pk}/")
    assert f'data-message-for="image:{image.pk}">The registry does not answer.<' in html
    assert 'data-status="finished"' in html
    assert "badge-red" not in html.split('id="builds"')[0]


def test_the_lineage_of_a_snapshot_is_shown_in_both_directions(
    client: Client, host: Host, owner: User
) -> None:
    base = make_image(host, owner, "base")
    workspace = make_workspace(host, owner, "notebook", image=base)
    snapshot = snapshot_of(workspace, owner, "notebook-1")
    child = make_workspace(host, owner, "child", image=snapshot)
    html = page(client, f"/images/{snapshot.pk}/")
    for address, words in (
        (f"/workspaces/{workspace.pk}/", "notebook"),
        (f"/images/{base.pk}/", "base"),
        (f"/workspaces/{child.pk}/", "child"),
    ):
        assert f'href="{address}">{words}</a>' in html
    assert f'href="/images/{snapshot.pk}/">notebook-1</a>' in page(client, f"/images/{base.pk}/")


def test_a_snapshot_outlives_what_it_was_taken_of(
    client: Client, host: Host, owner: User, stranger: User
) -> None:
    workspace = make_workspace(host, stranger, "secret-name", image=make_image(host, stranger))
    html = page(client, f"/images/{snapshot_of(workspace, owner).pk}/")
    assert "a workspace that is gone" in html
    assert "an image that is gone" in html
    assert "secret-name" not in html


def test_a_workspace_lists_its_snapshots_with_what_each_is_good_for(
    client: Client, host: Host, owner: User
) -> None:
    workspace = make_workspace(host, owner, observed_status="running", observed_revision=1)
    made = snapshot_of(workspace, owner, "made", size_bytes=3 * 1024**2)
    busy = snapshot_of(workspace, owner, "busy", status="building", progress=60)
    failed = snapshot_of(workspace, owner, "failed", status="failed", message="No space left.")
    other = snapshot_of(make_workspace(host, owner), owner, "of-another")
    html = part(client, f"/workspaces/{workspace.pk}/?part=snapshots")
    rows = {row[:36]: row for row in html.split('data-snapshot="')[1:]}
    assert str(other.pk) not in rows
    assert f'data-restore="{made.pk}"' in rows[str(made.pk)]
    assert f"/workspaces/new/?image={made.pk}" in rows[str(made.pk)]
    assert "3 MiB" in rows[str(made.pk)]
    assert re.search(r'<progress[^>]* value="60"', rows[str(busy.pk)])
    assert " disabled" not in button(rows[str(busy.pk)], "cancel")
    assert "data-restore" not in rows[str(busy.pk)]
    assert "No space left." in rows[str(failed.pk)]
    assert "data-restore" not in rows[str(failed.pk)]
    assert " disabled" not in button(rows[str(failed.pk)], "build")


def test_a_workspace_is_not_restored_to_what_it_runs(
    client: Client, host: Host, owner: User
) -> None:
    workspace = make_workspace(host, owner)
    snapshot = snapshot_of(workspace, owner)
    type(workspace).objects.filter(pk=workspace.pk).update(image=snapshot)
    html = part(client, f"/workspaces/{workspace.pk}/?part=snapshots")
    assert "in use" in html
    assert "data-restore=" not in html


def test_only_a_running_workspace_offers_a_snapshot_and_every_one_a_clone(
    client: Client, host: Host, owner: User
) -> None:
    for status, allowed in (("running", True), ("stopped", False), ("snapshotting", False)):
        workspace = make_workspace(host, owner, observed_status=status, observed_revision=1)
        html = page(client, f"/workspaces/{workspace.pk}/")
        assert (" disabled" not in button(html, "snapshot")) is allowed
        assert 'data-open="take-snapshot"' in button(html, "snapshot")
        assert " disabled" not in button(html, "clone")
        assert f'data-stamp="{workspace.name}"' in html
        assert f'<option value="{host.pk}" selected>alpha</option>' in html
