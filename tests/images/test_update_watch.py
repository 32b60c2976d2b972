"""The update watch: looks on demand, what a newer digest does, and what a failed look does not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agent.protocol.report import BuildStatus, ImageObserved
from images.models import Build, Image
from images.services.observed import build_observed, image_observed
from tests.factories import api_client, make_image, make_workspace
from workspaces.control.compile import content_digest, host_state

if TYPE_CHECKING:
    from agent.protocol.state import HostState
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"
OLD, NEW = f"sha256:{'0' * 64}", f"sha256:{'1' * 64}"


def watched(host: Host, owner: User, **fields: Any) -> Image:
    defaults: dict[str, Any] = {"update_policy": "always", "digest": OLD, "engine_id": "sha256:a"}
    return make_image(host, owner, "app", **(defaults | fields))


def look(image: Image, seq: int, **fields: Any) -> bool:
    """What the agent reports after it has looked at the registry."""
    defaults: dict[str, Any] = {"present": True, "engine_id": image.engine_id, "digest": OLD}
    item = ImageObserved(seq=seq, image_id=str(image.pk), **(defaults | fields))
    done = image_observed(image.host, item, epoch=1)
    image.refresh_from_db()
    return done


def end(image: Image, status: str, seq: int, **fields: Any) -> None:
    build = image.builds.first()
    assert build is not None
    item = BuildStatus(
        seq=seq, image_id=str(image.pk), build_id=str(build.pk), status=status, **fields
    )
    assert build_observed(image.host, item, epoch=1)
    image.refresh_from_db()


def document(host: Host) -> HostState:
    host.refresh_from_db()
    return host_state(host)


def shown(image: Image, owner: User) -> dict[str, Any]:
    body: dict[str, Any] = api_client(owner).get(f"{URL}{image.pk}/").json()
    return body


def test_a_look_on_demand_reaches_the_agent_with_a_new_number(host: Host, owner: User) -> None:
    image = watched(host, owner)
    assert "check" in shown(image, owner)["allowed_actions"]
    for number in (1, 2):
        before = content_digest(document(host))
        answer = api_client(owner).post(f"{URL}{image.pk}/check/")
        assert (answer.status_code, answer.json()["status"]) == (202, "finished")
        (wanted,) = document(host).images
        assert wanted.check == number
        assert content_digest(document(host)) != before
    assert answer.json()["revision"] == image.builds.count() == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"update_policy": "if_missing"}, "if_missing"),
        ({"kind": "build"}, "of kind build"),
        ({"kind": "snapshot"}, "of kind snapshot"),
        ({"reference": f"busybox@{OLD}"}, "pinned"),
        ({"enabled": False}, "disabled"),
    ],
)
def test_what_has_nothing_to_look_for_says_why(
    host: Host, owner: User, fields: dict[str, Any], words: str
) -> None:
    image = watched(host, owner, **fields)
    answer = api_client(owner).post(f"{URL}{image.pk}/check/")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_watched")
    assert words in answer.json()["message"]
    image.refresh_from_db()
    assert image.check_requested == 0
    assert "check" not in shown(image, owner)["allowed_actions"]


def test_a_look_takes_no_fields_and_heeds_the_revision(host: Host, owner: User) -> None:
    url = f"{URL}{watched(host, owner).pk}/check/"
    assert api_client(owner).post(url, {"force": True}).status_code == 400
    assert api_client(owner).post(url, headers={"If-Match": "9"}).status_code == 409


def test_a_newer_digest_replaces_workspaces_only_once_it_is_there(host: Host, owner: User) -> None:
    image = watched(host, owner)
    make_workspace(host, owner, image=image)
    look(image, 1, available_digest=NEW)
    build = image.builds.first()
    assert build is not None
    assert (build.trigger, build.status) == ("update", "pending")
    assert shown(image, owner)["update_available"] is True
    assert document(host).workspaces[0].spec.image_engine_id == "sha256:a"
    end(image, "building", 2)
    assert document(host).workspaces[0].spec.image_engine_id == "sha256:a"
    end(image, "finished", 3, engine_id="sha256:b", digest=NEW)
    assert document(host).workspaces[0].spec.image_engine_id == "sha256:b"
    body = shown(image, owner)
    assert (body["update_available"], body["available_digest"]) == (False, NEW)


def test_only_what_the_image_is_now_is_kept_of_its_pulls(host: Host, owner: User) -> None:
    image = watched(host, owner)
    make_image(host, owner, "built", kind="build", engine_id="sha256:c")
    look(image, 1, available_digest=NEW)
    kept = {wanted.name: wanted.keep for wanted in document(host).images}
    assert kept == {"app": ("sha256:a",), "built": None}
    end(image, "finished", 2, engine_id="sha256:b", digest=NEW)
    (wanted,) = [one for one in document(host).images if one.name == "app"]
    assert wanted.keep == ("sha256:b",)
    look(image, 3, present=False, engine_id="")
    (wanted,) = [one for one in document(host).images if one.name == "app"]
    assert wanted.keep == ()


def test_a_failed_pull_of_the_newer_one_replaces_nothing(host: Host, owner: User) -> None:
    image = watched(host, owner)
    make_workspace(host, owner, image=image)
    before = document(host).workspaces
    look(image, 1, available_digest=NEW)
    end(image, "failed", 2, message="The registry refused the password.")
    assert document(host).workspaces == before
    body = shown(image, owner)
    assert (body["status"], body["engine_id"], body["digest"]) == ("failed", "sha256:a", OLD)
    assert (body["update_available"], body["message"]) == (
        True,
        "The registry refused the password.",
    )


def test_a_failed_look_is_shown_and_changes_nothing_else(host: Host, owner: User) -> None:
    image = watched(host, owner, size_bytes=7, available_digest=OLD)
    make_workspace(host, owner, image=image)
    before, kept = shown(image, owner), content_digest(document(host))
    sentence = "registry.example.com does not answer."
    look(image, 1, digest="", message=sentence)
    after = shown(image, owner)
    moved = {name for name in after if after[name] != before[name]}
    assert moved == {"message", "observed_at"}
    assert after["message"] == sentence
    assert content_digest(document(host)) == kept
    look(image, 2, available_digest=OLD)
    assert shown(image, owner)["message"] == ""


def test_a_failed_look_does_not_hide_why_a_pull_failed(host: Host, owner: User) -> None:
    image = watched(host, owner, status="failed", message="No such tag.")
    look(image, 1, message="registry.example.com does not answer.")
    assert image.message == "No such tag."


def test_a_newer_digest_is_pulled_once_even_if_it_never_matches(host: Host, owner: User) -> None:
    image = watched(host, owner)
    look(image, 1, available_digest=NEW)
    end(image, "finished", 2, engine_id="sha256:b", digest="sha256:other")
    for seq in (3, 4):
        look(image, seq, digest="sha256:other", available_digest=NEW)
    assert image.builds.count() == 2


def test_a_failed_pull_is_tried_again_when_the_registry_answers_but_not_at_once(
    host: Host, owner: User
) -> None:
    image = watched(host, owner)
    look(image, 1, available_digest=NEW)
    end(image, "failed", 2)
    look(image, 3, available_digest=NEW)
    assert image.builds.count() == 2
    ago = timezone.now() - timedelta(seconds=host.update_interval + 1)
    Build.objects.filter(image=image).update(finished_at=ago)
    look(image, 4, available_digest="", message="The registry does not answer.")
    assert image.builds.count() == 2
    look(image, 5, available_digest=NEW)
    newest = image.builds.first()
    assert newest is not None
    assert (newest.number, newest.trigger, image.status) == (3, "update", "pending")


def test_a_first_pull_that_failed_heals_when_the_registry_answers(host: Host, owner: User) -> None:
    image = watched(host, owner, status="failed", digest="", engine_id="")
    ago = timezone.now() - timedelta(seconds=host.update_interval + 1)
    Build.objects.filter(image=image).update(finished_at=ago)
    look(image, 1, present=False, digest="", available_digest=NEW)
    assert (image.status, image.builds.count()) == ("pending", 2)


@pytest.mark.parametrize("fields", [{"update_policy": "if_missing"}, {"enabled": False}])
def test_a_failed_pull_that_nobody_follows_stays_failed(
    host: Host, owner: User, fields: dict[str, Any]
) -> None:
    image = watched(host, owner, status="failed", **fields)
    Build.objects.update(finished_at=timezone.now() - timedelta(days=1))
    look(image, 1, available_digest=NEW)
    assert image.builds.count() == 1


def test_another_reference_forgets_what_the_old_one_was_seen_with(host: Host, owner: User) -> None:
    image = watched(host, owner, available_digest=NEW)
    api_client(owner).patch(f"{URL}{image.pk}/", {"reference": "busybox:2"})
    end(image, "finished", 1, engine_id="sha256:b", digest="sha256:other")
    body = shown(image, owner)
    assert (body["available_digest"], body["update_available"]) == ("", False)


@pytest.mark.parametrize(
    ("fields", "available"),
    [
        ({"available_digest": ""}, False),
        ({"available_digest": OLD}, False),
        ({"available_digest": OLD, "digest": f"busybox@{OLD}"}, False),
        ({"available_digest": NEW}, True),
        ({"available_digest": NEW, "engine_id": "", "digest": ""}, False),
    ],
)
def test_an_update_is_available_when_the_registry_has_another_one(
    host: Host, owner: User, fields: dict[str, Any], available: bool
) -> None:
    image = watched(host, owner, **fields)
    assert shown(image, owner)["update_available"] is available
