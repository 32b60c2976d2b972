"""The first page: what needs attention first, what is under way, what happened last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from tests.factories import (
    make_host,
    make_image,
    make_network,
    make_silent_host,
    make_stack,
    make_workspace,
)
from workspaces.models import Event, Port, Url, Workspace

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def page(client: Client, address: str = "/", **headers: str) -> str:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def tell(workspace: Workspace, cause: str) -> None:
    Event.objects.create(workspace=workspace, at=timezone.now(), kind="replaced", cause=cause)


def test_what_is_wrong_with_hosts_comes_before_what_is_wrong_on_them(
    client: Client, host: Host, owner: User
) -> None:
    make_silent_host("mute")
    make_host("full", disk_free_bytes=1024, disk_total_bytes=2**40)
    broken = make_workspace(host, owner, "broken", observed_status="error", observed_revision=1)
    # Its badge says that it is being started again.
    again = make_workspace(host, owner, "on-its-way", observed_status="error")
    Workspace.objects.filter(pk=again.pk).update(
        pending_status="starting", revision=broken.revision + 1, observed_revision=broken.revision
    )
    make_stack(host, owner, "unsynced", status="failed")
    make_network(host, owner, "unlinked", status="error")
    shown = page(client).split("Needs attention")[1]
    names = re.findall(r"<strong>(.*?)</strong>", shown)[:5]
    assert names == ["full", "mute", "unlinked", "unsynced", "broken"]
    make_image(host, owner, "unmade", status="failed")
    assert "unmade" in page(client).split("Needs attention")[1]
    assert "Only 1 KiB of its disk is free" in shown


def test_the_bar_shows_each_state_by_its_share(client: Client, host: Host, owner: User) -> None:
    for status in ("running", "running", "stopped", "error"):
        make_workspace(host, owner, observed_status=status, observed_revision=1)
    bars = re.findall(r'<rect class="share-(\w+)" x="([\d.]+)" width="([\d.]+)"', page(client))
    assert bars == [("green", "0.0", "50.0"), ("red", "50.0", "25.0"), ("grey", "75.0", "25.0")]


def test_builds_under_way_and_last_events_are_those_of_the_user(
    client: Client, host: Host, owner: User, stranger: User
) -> None:
    make_image(host, owner, "my-build", status="building", progress=30)
    make_image(host, stranger, "their-build", status="building")
    tell(make_workspace(host, owner, "mine"), "Changed: image.")
    tell(make_workspace(host, stranger, "theirs"), "Changed: secret plans.")
    html = page(client)
    assert "my-build" in html
    assert 'value="30"' in html
    assert "Changed: image." in html
    assert "their-build" not in html
    assert "secret plans" not in html


@pytest.mark.parametrize(
    ("asked", "host_ip", "address"),
    [
        ("127.0.0.1", "", "http://127.0.0.1:8080/"),
        ("trailer.example.com", "", "http://192.168.1.10:8080/"),
        ("trailer.example.com", "10.0.0.7", "http://10.0.0.7:8080/"),
        ("trailer.example.com", "127.0.0.1", None),
    ],
)
def test_a_port_is_a_link_where_somebody_can_open_it(
    asked: str,
    host_ip: str,
    address: str | None,
    client: Client,
    host: Host,
    owner: User,
    settings: object,
) -> None:
    settings.ALLOWED_HOSTS = ["*"]  # type: ignore[attr-defined]
    workspace = make_workspace(host, owner, "web")
    Port.objects.create(
        workspace=workspace, container_port=80, host_port=8080, host_ip=host_ip, protocol="tcp"
    )
    Url.objects.create(
        workspace=workspace, subdomain="web", domain="example.com", port=80, tls=True
    )
    for page_address in ("/workspaces/", f"/workspaces/{workspace.pk}/"):
        html = page(client, page_address, host=asked)
        links = re.findall(r'href="(http[^"]*)"', html)
        assert "https://web.example.com/" in links
        assert [link for link in links if ":8080" in link] == ([address] if address else [])
