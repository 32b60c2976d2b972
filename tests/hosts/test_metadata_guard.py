"""Whether a host's containers are kept from metadata addresses: set by admins, told by agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from agent.protocol.session import Heartbeat
from hosts.models import Host
from hosts.selectors import host_settings
from hosts.services.sessions import host_heartbeat
from tests.factories import api_client, make_host
from trailer.standalone.bootstrap import ensure_local_host

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/hosts/"
WHY = "The metadata addresses cannot be closed to containers: this kernel has no nf_tables."


def beat(host: Host, state: str, message: str = "") -> None:
    host_heartbeat(
        host,
        Heartbeat(
            epoch=host.epoch,
            agent_version="1",
            metadata_guard=state,
            metadata_message=message,
        ),
    )


def page(user: User, host: Host, tab: str) -> str:
    client = Client()
    client.force_login(user)
    return client.get(f"/hosts/{host.pk}/?tab={tab}").content.decode()


def test_a_new_host_is_guarded_and_an_admin_may_change_that(admin: User, owner: User) -> None:
    body = api_client(admin).post(URL, {"name": "beta"}).json()
    assert body["block_metadata"] is True
    assert body["metadata_guard"] == {"state": "", "message": ""}
    host = Host.objects.get(name="beta")
    assert host_settings(host).block_metadata is True
    refused = api_client(owner).patch(f"{URL}{host.pk}/", {"block_metadata": False})
    assert refused.status_code == 403
    changed = api_client(admin).patch(f"{URL}{host.pk}/", {"block_metadata": False})
    assert changed.json()["block_metadata"] is False
    after = Host.objects.get(name="beta")
    assert host_settings(after).block_metadata is False
    assert after.desired_version > host.desired_version


def test_what_the_agent_says_is_nobody_elses_to_write(admin: User, host: Host) -> None:
    answer = api_client(admin).patch(f"{URL}{host.pk}/", {"metadata_guard": "blocked"})
    assert answer.status_code == 400
    assert "metadata_guard" in answer.json()["fields"]


def test_the_machine_of_a_standalone_trailer_is_left_alone_until_somebody_asks(
    admin: User,
) -> None:
    assert ensure_local_host().block_metadata is False


def test_the_agents_word_is_shown_with_its_reason(admin: User, owner: User) -> None:
    host = make_host("north")
    beat(host, "open", WHY)
    told = api_client(owner).get(f"{URL}{host.pk}/").json()["metadata_guard"]
    assert told == {"state": "open", "message": WHY}
    shown = page(owner, host, "overview")
    assert 'data-metadata="open"' in shown
    assert WHY in shown
    beat(host, "blocked")
    shown = page(owner, host, "overview")
    assert 'data-metadata="blocked"' in shown
    assert WHY not in shown


def test_the_switch_is_among_the_settings_of_admins(admin: User, owner: User) -> None:
    host = make_host("north")
    assert 'name="block_metadata" checked' in page(admin, host, "settings")
    assert "block_metadata" not in page(owner, host, "settings")
