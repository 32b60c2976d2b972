"""The history of builds: what each row tells, and how long it is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from images.models import Build, BuildLogChunk, Image
from images.services.logs import build_log_append
from images.services.queue import KEPT_BUILDS
from tests.factories import api_client, make_build, make_image

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"


def history(image: Image, owner: User, query: str = "") -> Any:
    return api_client(owner).get(f"{URL}{image.pk}/builds/{query}").json()


def filled(host: Host, owner: User, count: int) -> Image:
    """An image with so many builds, all over."""
    image = make_image(host, owner, "app")
    for _ in range(count - 1):
        make_build(image, status="failed")
    return image


def test_a_build_tells_all_about_itself(host: Host, owner: User) -> None:
    image = make_image(host, owner)
    end = timezone.now()
    build = make_build(
        image,
        status="finished",
        trigger="requested",
        actor=owner,
        message="done",
        digest="sha256:d",
        engine_id="sha256:e",
        size_bytes=7,
        started_at=end - timedelta(seconds=90.5),
        finished_at=end,
    )
    build_log_append(host, build.pk, 0, b"Step 1\n")
    row = history(image, owner)["results"][0]
    assert row == api_client(owner).get(f"/api/v1/builds/{build.pk}/").json()
    told = {
        "number": 2,
        "trigger": "requested",
        "actor": "olga",
        "status": "finished",
        "message": "done",
        "duration_s": 90.5,
        "digest": "sha256:d",
        "engine_id": "sha256:e",
        "size_bytes": 7,
        "log_bytes": 7,
    }
    assert {name: row[name] for name in told} == told
    assert row["started_at"] < row["finished_at"]


def test_a_build_that_has_not_begun_has_no_duration(host: Host, owner: User) -> None:
    row = history(make_image(host, owner, status="pending"), owner)["results"][0]
    assert (row["duration_s"], row["started_at"], row["finished_at"]) == (None, None, None)


def test_a_running_build_tells_how_long_so_far(host: Host, owner: User) -> None:
    image = make_image(host, owner, status="building")
    Build.objects.update(started_at=timezone.now() - timedelta(seconds=60))
    assert 60 <= history(image, owner)["results"][0]["duration_s"] < 120


def test_only_the_newest_builds_are_kept_and_their_logs_go_with_them(
    host: Host, owner: User
) -> None:
    image = filled(host, owner, KEPT_BUILDS + 2)
    oldest = image.builds.get(number=1)
    build_log_append(host, oldest.pk, 0, b"old")
    assert api_client(owner).post(f"{URL}{image.pk}/build/").status_code == 202
    numbers = list(image.builds.values_list("number", flat=True))
    assert numbers == list(range(KEPT_BUILDS + 3, 3, -1))
    assert len(numbers) == KEPT_BUILDS
    assert not BuildLogChunk.objects.exists()


def test_what_is_under_way_is_kept_however_old(host: Host, owner: User) -> None:
    image = filled(host, owner, KEPT_BUILDS + 2)
    Build.objects.filter(number=1).update(status="building")
    api_client(owner).post(f"{URL}{image.pk}/build/")
    assert image.builds.filter(number=1, cancel_requested=True).exists()
    assert not image.builds.filter(number=2).exists()


def test_another_images_history_is_left_alone(host: Host, owner: User) -> None:
    image, other = filled(host, owner, KEPT_BUILDS), make_image(host, owner)
    api_client(owner).post(f"{URL}{image.pk}/build/")
    assert other.builds.get().number == 1


def test_the_history_takes_the_same_queries_however_long_it_is(
    host: Host, owner: User, django_assert_max_num_queries: Any
) -> None:
    image = filled(host, owner, 40)
    client = api_client(owner)
    client.get(URL)
    with django_assert_max_num_queries(4):
        body = client.get(f"{URL}{image.pk}/builds/?page_size=50").json()
    assert len(body["results"]) == 40
