"""Pages about a host's disk: images that nothing needs, free space, limits that can be set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.test import Client

from tests.factories import make_admin, make_host, make_image, make_workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_unused_images_are_listed_with_what_they_would_free(
    client: Client, host: Host, owner: User
) -> None:
    used = make_image(host, owner, "used", engine_id="sha256:one", size_bytes=100)
    make_workspace(host, owner, image=used)
    big = make_image(host, owner, "big", engine_id="sha256:two", size_bytes=5 * 1024**3)
    twin = make_image(host, owner, "twin", engine_id="sha256:one", size_bytes=100)
    nothing = make_image(host, owner, "nothing", status="failed")
    make_image(make_host(), owner, "elsewhere")
    make_image(host, None, "not-mine")
    make_image(host, owner, "busy", status="building")
    html = page(client, f"/hosts/{host.pk}/?tab=images")
    boxes = re.findall(r'data-unused-image="([^"]+)"[^>]*>', html)
    assert boxes == [str(big.pk), str(twin.pk), str(nothing.pk)]
    shared = re.findall(r'data-unused-image="([^"]+)"[^>]* data-shared>', html)
    assert shared == [str(twin.pk)]
    assert "at most 5 GiB to free" in html


def test_a_host_without_unused_images_says_so(client: Client, host: Host) -> None:
    html = page(client, f"/hosts/{host.pk}/?tab=images")
    assert "Nothing to clean up" in html
    assert "data-unused-all" not in html


@pytest.mark.parametrize(("free_gib", "is_low"), [(100, False), (1, True)])
def test_the_space_on_a_disk_is_a_bar_that_warns(
    free_gib: int, is_low: bool, client: Client
) -> None:
    host = make_host(
        disk_free_bytes=free_gib * 1024**3,
        disk_total_bytes=200 * 1024**3,
        message="The engine answers slowly.",
    )
    html = page(client, f"/hosts/{host.pk}/")
    assert f'value="{100 - free_gib // 2}"' in html
    assert f"{free_gib} GiB</strong> free" in html
    assert ("nothing is pulled, built or snapshotted here" in html) is is_low
    assert f'is-warning"><span class="message" data-message-for="host:{host.pk}">' in re.sub(
        r"\{#.*?#\}\s*|\n", "", html
    )
    assert "The engine answers slowly." in html


def test_every_setting_of_a_host_can_be_changed_on_its_page() -> None:
    host = make_host(build_context_bytes=96 * 1024**2, disk_free_min_bytes=0, build_parallel=3)
    client = Client()
    client.force_login(make_admin())
    html = page(client, f"/hosts/{host.pk}/?tab=settings")
    for name, value, encode in (
        ("build_idle_timeout", "600", "number"),
        ("build_context_bytes", "96 MiB", "bytes"),
        ("build_parallel", "3", "number"),
        ("update_interval", "300", "number"),
        ("disk_free_min_bytes", "0", "bytes"),
    ):
        assert re.search(
            rf'name="{name}"[^>]* value="{value}"[^>]* data-encode="{encode}"', html
        ), name
