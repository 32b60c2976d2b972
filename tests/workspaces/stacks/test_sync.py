"""What a sync does to services, needs and the stack's own status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from hosts.models import Host, Tombstone, Volume
from images.models import Image
from tests.workspaces.stacks.scene import SECRET, WEB, fresh, last_sync
from trailer.errors import Conflict
from trailer.sealed import unseal
from workspaces.models import Event, Revision, Workspace
from workspaces.services import workspace_delete, workspace_redeploy, workspace_update
from workspaces.stacks.git.types import GitError
from workspaces.stacks.models import Stack, StackRevision, Sync
from workspaces.stacks.services.actions import stack_deploy, stack_sync
from workspaces.stacks.services.stacks import stack_delete

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene

TWO = WEB.format(mode="two")


def deployed(scene: StackScene) -> Stack:
    stack = scene.create()
    scene.work()
    stack = fresh(stack)
    assert (stack.status, stack.message) == ("synced", "")
    return stack


def test_a_new_stack_is_deployed_as_workspaces_on_a_network_of_its_own(scene: StackScene) -> None:
    stack = deployed(scene)
    web = scene.service("web")
    assert (web.name, web.stack, web.owner) == ("shop-web", stack.pk, scene.owner)
    assert [network.name for network in web.networks.all()] == ["shop"]
    assert {var.name: var.value for var in web.env_vars.all()} == {"MODE": "one"}
    assert stack.deployed_commit == stack.available_commit == scene.repository.commit_id
    sync = last_sync(stack)
    assert (sync.trigger, sync.outcome, sync.author) == ("created", "deployed", "Ada")
    assert sync.diff == ["service web added"]
    assert "Service web: created." in sync.log


def test_a_new_commit_changes_only_what_it_says(scene: StackScene) -> None:
    stack = deployed(scene)
    scene.repository.push(TWO)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert {var.value for var in scene.service("web").env_vars.all()} == {"two"}
    assert last_sync(stack).diff == ["service web: environment changed"]
    cause = Event.objects.filter(workspace=scene.service("web"), kind="changed").get().cause
    assert cause == f"Stack shop at {scene.repository.commit_id[:8]}: changed: env."


def test_a_poll_that_finds_nothing_changed_asks_git_once_and_orders_nothing(
    scene: StackScene,
) -> None:
    stack = deployed(scene)
    asked, fetched = scene.repository.asked, scene.repository.fetched
    version = Host.objects.get(pk=scene.host.pk).desired_version
    Stack.objects.filter(pk=stack.pk).update(poll_at=timezone.now())
    scene.work()
    assert (scene.repository.asked - asked, scene.repository.fetched - fetched) == (1, 0)
    assert Host.objects.get(pk=scene.host.pk).desired_version == version
    assert Sync.objects.filter(stack=stack).count() == 1
    assert fresh(stack).status == "synced"


def test_a_commit_beside_the_path_is_no_change(scene: StackScene) -> None:
    stack = deployed(scene)
    revision = scene.service("web").revision
    commit = scene.repository.push()
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert last_sync(stack).outcome == "unchanged"
    assert scene.service("web").revision == revision
    assert fresh(stack).deployed_commit == commit
    assert StackRevision.objects.filter(stack=stack).count() == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("services:\n  web:\n    image: app:1\n    privileged: true\n", "privileged"),
        ("services: {web: {image: app:1, environment: {A: '${config.NOPE}'}}}", "NOPE"),
        ("services: {web: {image: app:1, environment: {A: '${secret.NOPE}'}}}", "NOPE"),
        ("services: {web: {image: app:1, mem_limit: 900g}}", "Service web"),
    ],
)
def test_a_broken_file_touches_nothing_and_says_what_is_wrong(
    scene: StackScene, text: str, sentence: str
) -> None:
    stack = deployed(scene)
    before = scene.service("web").revision
    scene.repository.push(text)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert stack.status == "failed"
    assert sentence in stack.message
    assert scene.service("web").revision == before
    assert last_sync(stack).outcome == "failed"


def test_an_image_that_is_not_there_touches_nothing(scene: StackScene) -> None:
    stack = deployed(scene)
    scene.missing.add("app:2")
    scene.repository.push(TWO.replace("app:1", "app:2"))
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).message == "The image app:2 can't be had: manifest unknown"
    assert scene.service("web").image.reference == "app:1"
    assert scene.service("web").revision == 1


def test_a_service_that_comes_up_badly_is_set_back(scene: StackScene) -> None:
    stack = deployed(scene)
    good = stack.deployed_commit
    scene.broken.add("two")
    bad = scene.repository.push(TWO)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    scene.broken.clear()
    stack = fresh(stack)
    assert (stack.status, stack.deployed_commit, stack.failed_commit) == ("failed", good, bad)
    assert stack.message == "Service web: The new container was not healthy."
    assert {var.value for var in scene.service("web").env_vars.all()} == {"one"}
    # A poll leaves that commit alone; a person may try it again.
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert last_sync(stack).outcome == "unchanged"
    stack_deploy(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).deployed_commit == bad


def test_a_service_removed_from_the_file_loses_its_container_only(scene: StackScene) -> None:
    more = WEB.format(mode="one") + "  job: {image: app:1, volumes: ['data:/data']}\n"
    scene.repository.push(more + "volumes: {data: {}}\n")
    stack = deployed(scene)
    job = scene.service("job")
    scene.repository.push(TWO)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert not Workspace.objects.filter(pk=job.pk).exists()
    assert [row.object_id for row in Tombstone.objects.all()] == [job.pk]
    assert Volume.objects.filter(name="shop-data").exists()


def test_a_renamed_service_may_take_over_the_port(scene: StackScene) -> None:
    scene.repository.push("services: {web: {image: app:1, ports: ['8080:80']}}")
    stack = deployed(scene)
    scene.repository.push("services: {front: {image: app:1, ports: ['8080:80']}}")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    assert [row.service for row in Workspace.objects.filter(stack=stack.pk)] == ["front"]


def test_services_start_after_what_they_depend_on(scene: StackScene) -> None:
    scene.repository.push(
        "services:\n  web: {image: app:1, depends_on: [db]}\n  db: {image: app:1}\n"
    )
    stack = scene.create()
    for _ in range(10):
        scene.work(rounds=1)
        names = list(Workspace.objects.filter(stack=stack.pk).values_list("service", flat=True))
        if names:
            break
    assert names == ["db"]
    scene.work()
    assert fresh(stack).status == "synced"
    assert Workspace.objects.filter(stack=stack.pk).count() == 2


NEEDY = """\
services:
  web: {image: app:1, environment: {URL: '${needs.postgres.url}', K: 'x${secret.KEY}'}}
x-trailer: {needs: {postgres: {}}}
"""


def test_needs_come_first_and_their_secrets_stay_secret(scene: StackScene) -> None:
    scene.repository.push(NEEDY)
    stack = scene.create(secret_variables={"KEY": SECRET})
    for _ in range(10):
        scene.work(rounds=1)
        names = list(Workspace.objects.filter(stack=stack.pk).values_list("service", flat=True))
        if names:
            break
    assert names == ["postgres"]
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    web = scene.service("web")
    assert {var.name: var.is_secret for var in web.env_vars.all()} == {"URL": True, "K": True}
    shown = [last_sync(stack).log, *Event.objects.values_list("changes", flat=True)]
    shown += list(Revision.objects.values_list("fields", flat=True))
    assert SECRET not in str(shown)
    assert "postgresql://" not in str(shown)


def test_a_needs_data_and_credentials_outlive_the_need_and_the_stack(scene: StackScene) -> None:
    scene.repository.push(NEEDY)
    stack = scene.create(secret_variables={"KEY": SECRET})
    scene.work()
    before = _secrets(scene.service("postgres"))
    scene.repository.push(WEB.format(mode="one"))
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert not Workspace.objects.filter(service="postgres").exists()
    stack_delete(actor=scene.owner, stack=stack)
    assert Volume.objects.filter(name="shop-needs-postgres").exists()
    scene.repository.push(NEEDY)
    scene.create(secret_variables={"KEY": SECRET})
    scene.work()
    assert _secrets(scene.service("postgres")) == before


def _secrets(workspace: Workspace) -> dict[str, str]:
    return {
        var.name: unseal(var, "secret_token") for var in workspace.env_vars.filter(is_secret=True)
    }


def test_a_need_that_is_not_healthy_in_time_fails_the_sync(scene: StackScene) -> None:
    scene.repository.push(NEEDY)
    scene.broken.add("postgres")
    stack = scene.create(secret_variables={"KEY": SECRET})
    scene.work()
    assert fresh(stack).message == "Need postgres: The new container was not healthy."
    assert not Workspace.objects.filter(service="web").exists()


def test_git_that_is_away_never_blocks_repair(scene: StackScene) -> None:
    stack = deployed(scene)
    web = scene.service("web")
    gone = {"observed_status": "error", "message": "gone", "container_id": ""}
    Workspace.objects.filter(pk=web.pk).update(**gone)
    scene.repository.problem = GitError("The repository can't be reached.")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert (stack.status, stack.message) == ("failed", "The repository can't be reached.")
    assert scene.service("web").observed_status == "running"
    assert scene.repository.fetched == 1 + 4
    scene.repository.problem = None
    type(stack).objects.filter(pk=stack.pk).update(poll_at=stack.created_at)
    scene.work()
    assert (fresh(stack).status, fresh(stack).message) == ("synced", "")


def test_a_service_is_not_changed_by_hand(scene: StackScene) -> None:
    deployed(scene)
    web = scene.service("web")
    with pytest.raises(Conflict, match="stack shop"):
        workspace_update(actor=scene.owner, workspace=web, data={"cpus": 1})
    with pytest.raises(Conflict, match="stack shop"):
        workspace_delete(actor=scene.owner, workspace=web)
    workspace_redeploy(actor=scene.owner, workspace=web)
    scene.work()
    assert scene.service("web").generation == 1


def test_a_deploy_pulls_images_again_that_follow_their_registry(scene: StackScene) -> None:
    stack = deployed(scene)
    image = Image.objects.get(reference="app:1")
    assert (image.builds.count(), image.update_policy) == (1, "always")
    scene.missing.add("app:1")
    stack_deploy(actor=scene.owner, stack=stack)
    scene.work()
    assert image.builds.count() == 2
    assert fresh(stack).status == "synced"
    assert "could not be pulled again" in last_sync(stack).log


def test_deleting_a_stack_removes_its_containers_and_networks_but_no_data(
    scene: StackScene,
) -> None:
    stack = deployed(scene)
    stack_delete(actor=scene.owner, stack=stack)
    assert not Workspace.objects.exists()
    assert sorted(Tombstone.objects.values_list("kind", flat=True)) == ["network", "workspace"]


def test_a_poll_does_not_repeat_a_replace_that_failed(scene: StackScene) -> None:
    """The old container runs on, and each further try would be an interruption."""
    stack = deployed(scene)
    web = scene.service("web")
    failed = {"observed_status": "error", "message": "The new container is unhealthy."}
    Workspace.objects.filter(pk=web.pk).update(**failed)
    for _ in range(2):
        scene.pass_time(400)
        type(stack).objects.filter(pk=stack.pk).update(poll_at=stack.created_at)
        scene.work()
        assert last_sync(stack).outcome == "failed"
        assert fresh(stack).message == "Service web: The new container is unhealthy."
        assert scene.service("web").revision == web.revision
    stack_deploy(actor=scene.owner, stack=stack)
    scene.work()
    assert scene.service("web").revision == web.revision + 1
    assert fresh(stack).status == "synced", fresh(stack).message


def test_a_service_may_say_that_it_can_share_its_volumes(scene: StackScene) -> None:
    stack = deployed(scene)
    assert not scene.service("web").shared_volumes
    scene.repository.push(TWO + "    x-trailer: {shared_volumes: true}\n")
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    assert scene.service("web").shared_volumes


def test_a_need_is_changed_in_one_step_like_a_service(scene: StackScene) -> None:
    """Its agent stops the old container before the new one starts."""
    scene.repository.push(NEEDY)
    stack = scene.create(secret_variables={"KEY": SECRET})
    scene.work()
    scene.repository.push(NEEDY.replace("postgres: {}", "postgres: {image: 'postgres:18'}"))
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    postgres = scene.service("postgres")
    assert (postgres.image.reference, postgres.desired_state) == ("postgres:18", "running")
    asked = Event.objects.filter(workspace=postgres, kind="changed").order_by("revision")
    assert [[change["field"] for change in event.changes] for event in asked] == [["image"]]


@pytest.mark.parametrize(
    ("commit", "sentence"),
    [("services: []\n", "services"), (TWO, "Service web: The new container was not healthy.")],
)
def test_the_log_of_a_failed_sync_says_why_once(
    scene: StackScene, commit: str, sentence: str
) -> None:
    stack = deployed(scene)
    scene.broken = {"two"}
    scene.repository.push(commit)
    stack_sync(actor=scene.owner, stack=stack)
    scene.work()
    sync = last_sync(stack)
    assert sync.outcome == "failed"
    assert sentence in sync.message
    assert sync.log.count(sync.message) == 1
