"""An agent that was shut out: refused everywhere, shown as such, and let in again by enrolment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from hosts.models import AgentToken, Enrolment, Host
from hosts.selectors import host_of_agent
from hosts.services.enrolment import agent_token_create, enrolment_create, enrolment_redeem
from hosts.services.revocation import host_revoke
from hosts.status import host_status
from tests.factories import api_client, make_user
from trailer.errors import NotAllowed

if TYPE_CHECKING:
    from trailer.accounts.models import User


def heard(host: Host) -> str:
    """A token of a host that is online."""
    token = agent_token_create(host)
    Host.objects.filter(pk=host.pk).update(last_heartbeat=timezone.now(), message="Fine.")
    return token


def test_a_revoked_agent_is_refused_and_the_host_says_so_at_once(host: Host, admin: User) -> None:
    token = heard(host)
    answer = api_client(admin).post(f"/api/v1/hosts/{host.pk}/revoke/")
    assert answer.status_code == 202
    body = answer.json()
    assert (body["status"], body["fresh"]) == ("offline", False)
    assert "was shut out" in body["message"]
    refused = Client().get("/api/agent/v1/state", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 401
    page = Client()
    page.force_login(admin)
    assert b"was shut out" in page.get(f"/hosts/{host.pk}/").content


def test_a_line_that_was_not_pasted_yet_is_worth_nothing_either(host: Host, admin: User) -> None:
    waiting = enrolment_create(actor=admin, host=host).token
    host_revoke(actor=admin, host=host)
    with pytest.raises(NotAllowed):
        enrolment_redeem(waiting)
    assert not Enrolment.objects.exists()


def test_a_new_enrolment_brings_the_host_back(host: Host, admin: User) -> None:
    old = heard(host)
    host_revoke(actor=admin, host=host)
    token, _ = enrolment_redeem(enrolment_create(actor=admin, host=host).token)
    assert (host_of_agent(old), host_of_agent(token)) == (None, host)
    fresh = Host.objects.get()
    assert host_status(fresh, timezone.now()) == "online"
    assert AgentToken.objects.filter(revoked_at__isnull=True).count() == 1


def test_revoking_twice_and_without_an_agent_changes_nothing_more(host: Host, admin: User) -> None:
    for _ in range(2):
        assert api_client(admin).post(f"/api/v1/hosts/{host.pk}/revoke/").status_code == 202
    assert not AgentToken.objects.filter(revoked_at__isnull=True).exists()


def test_only_administrators_shut_agents_out(host: Host) -> None:
    token = heard(host)
    answer = api_client(make_user("somebody")).post(f"/api/v1/hosts/{host.pk}/revoke/")
    assert answer.status_code in (403, 404)
    assert host_of_agent(token) == host
