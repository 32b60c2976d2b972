"""Failed pulls are tried again by themselves, ever more seldom; builds and cancelled ones not."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from images.choices import BuildStatus, BuildTrigger
from images.models import Build, Image
from images.services.registries import registry_update
from images.services.retries import KEPT_RETRIES, pulls_retry
from tests.factories import make_host, make_image, make_registry, make_silent_host
from workspaces.control.compile import host_state

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


def failed(**fields: Any) -> Image:
    """An image whose only build failed just now."""
    image = make_image(status=BuildStatus.FAILED, **fields)
    image.builds.update(finished_at=timezone.now(), trigger=BuildTrigger.CREATED)
    return image


def fail_again(image: Image) -> None:
    newest = image.builds.order_by("-number").first()
    assert newest is not None
    Build.objects.filter(pk=newest.pk).update(
        status=BuildStatus.FAILED, finished_at=timezone.now()
    )
    Image.objects.filter(pk=image.pk).update(status=BuildStatus.FAILED)


def retried_after(seconds: float) -> int:
    return pulls_retry(timezone.now() + timedelta(seconds=seconds))


def triggers(image: Image) -> list[str]:
    return list(image.builds.order_by("number").values_list("trigger", flat=True))


def test_the_wait_doubles_up_to_five_minutes_and_begins_anew_after_a_change() -> None:
    image = failed(host=make_host(heartbeat_interval=3600), message="It broke off.")
    for wait in (10, 20, 40, 80, 160, 300, 300, 300):
        assert retried_after(wait - 1) == 0, wait
        assert retried_after(wait + 1) == 1, wait
        waiting = Image.objects.get(pk=image.pk)
        assert (waiting.status, waiting.message) == (BuildStatus.PENDING, "It broke off.")
        assert retried_after(1000) == 0
        fail_again(image)
        Build.objects.filter(trigger=BuildTrigger.CREATED).update(finished_at=timezone.now())
    # Of many retries in a row only the newest stay in the history, and all else does.
    assert triggers(image) == ["created", *["retry"] * (KEPT_RETRIES + 1)]
    Build.objects.create(
        image=image,
        number=99,
        trigger=BuildTrigger.REQUESTED,
        status=BuildStatus.FAILED,
        finished_at=timezone.now(),
    )
    assert retried_after(9) == 0
    assert retried_after(11) == 1


def test_only_pulls_that_failed_on_a_host_that_answers_are_tried_again() -> None:
    failed(kind="build", reference="")
    failed(host=make_silent_host())
    failed(host=make_host(enabled=False))
    failed(enabled=False)
    make_image(status=BuildStatus.CANCELLED)
    make_image(status=BuildStatus.FINISHED)
    assert retried_after(3) == 0
    assert retried_after(20) == 0


def test_an_older_image_on_the_host_does_not_pass_for_the_new_one() -> None:
    host = make_host()
    fresh, update = failed(host=host), failed(host=host, engine_id="sha256:old")
    assert retried_after(11) == 2
    forced = {row.id: row.build.force for row in host_state(host).images if row.build}
    assert forced == {str(fresh.pk): False, str(update.pk): True}


def test_a_corrected_password_is_tried_at_once(owner: User) -> None:
    registry = make_registry(owner)
    fields: dict[str, Any] = {"reference": f"{registry.server}/app:1", "registry": registry}
    broken = failed(owner=owner, **fields)
    fine = make_image(owner=owner, **fields)
    registry_update(actor=owner, registry=registry, password="right")
    assert triggers(broken) == ["created", "retry"]
    assert broken.builds.get(number=2).actor == owner
    assert fine.builds.count() == 1
