"""Enrolment: one token, one agent, once."""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.utils import timezone

from hosts.models import AgentToken, Enrolment, Host
from hosts.selectors import host_key, host_of_agent
from hosts.services.enrolment import agent_token_create, enrolment_create, enrolment_redeem
from tests.factories import api_client, make_admin, make_host
from trailer.audit.models import AuditEntry
from trailer.errors import ApplicationError, NotAllowed, Unavailable

if TYPE_CHECKING:
    from django.test import Client

    from trailer.accounts.models import User


def test_the_answer_holds_the_line_to_paste_and_only_a_digest_is_stored(
    host: Host, admin: User, settings: Any
) -> None:
    settings.TRAILER_AGENT_IMAGE = f"registry.example.org/agent@sha256:{'a' * 64}"
    body = api_client(admin).post(f"/api/v1/hosts/{host.pk}/enrolment/").json()
    words = shlex.split(body["command"])
    assert words[:3] == ["docker", "run", "-d"]
    assert f"TRAILER_SERVER_URL={settings.TRAILER_PUBLIC_URL}" in words
    assert f"TRAILER_ENROLMENT_TOKEN={body['token']}" in words
    assert words[-1] == body["image"] == settings.TRAILER_AGENT_IMAGE
    assert (body["problem"], body["digests"]) == ("", {})
    row = Enrolment.objects.get()
    assert body["token"] not in row.digest
    assert timedelta(minutes=14) < row.expires_at - timezone.now() <= timedelta(minutes=15)


def test_an_enrolment_takes_no_fields(host: Host, admin: User) -> None:
    answer = api_client(admin).post(f"/api/v1/hosts/{host.pk}/enrolment/", {"hours": 5})
    assert answer.status_code == 400


def test_a_redeemed_token_gives_the_agent_its_own(host: Host, admin: User) -> None:
    token, found = enrolment_redeem(enrolment_create(actor=admin, host=host).token)
    assert found == host
    assert host_of_agent(token) == host
    assert not AgentToken.objects.filter(digest__contains=token).exists()


def test_a_redemption_is_written_down_with_its_address(admin: User, client: Client) -> None:
    host = make_host()
    token = enrolment_create(actor=admin, host=host).token
    answer = client.post(
        "/api/agent/v1/enrol",
        {"token": token},
        content_type="application/json",
        REMOTE_ADDR="10.1.2.3",
    )
    assert answer.status_code == 200
    [entry] = AuditEntry.objects.filter(action="host.enrolled")
    assert (entry.object_id, entry.via, entry.address) == (str(host.pk), "agent", "10.1.2.3")
    assert token not in str(entry.__dict__)


def test_guesses_are_counted_by_the_address_that_our_proxy_wrote(
    client: Client, db: None, settings: Any
) -> None:
    settings.TRAILER_BEHIND_PROXY = True

    def guess(address: str) -> Any:
        return client.post(
            "/api/agent/v1/enrol",
            {"token": "guess"},
            content_type="application/json",
            HTTP_X_FORWARDED_FOR=f"6.6.6.6, {address}",
        )

    assert {guess("10.9.9.1").status_code for _ in range(20)} == {403}
    refused = guess("10.9.9.1")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 61
    assert guess("10.9.9.2").status_code == 403


def test_a_token_is_redeemed_only_once(host: Host, admin: User) -> None:
    token = enrolment_create(actor=admin, host=host).token
    enrolment_redeem(token)
    with pytest.raises(NotAllowed):
        enrolment_redeem(token)
    assert AgentToken.objects.filter(revoked_at__isnull=True).count() == 1


@pytest.mark.parametrize("token", ["", "trl_enrol_guess", "x" * 10_000])
def test_an_unknown_token_is_refused(host: Host, token: str) -> None:
    with pytest.raises(NotAllowed):
        enrolment_redeem(token)


def test_an_expired_token_is_refused(host: Host, admin: User) -> None:
    token = enrolment_create(actor=admin, host=host).token
    Enrolment.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotAllowed):
        enrolment_redeem(token)


def test_a_new_agent_token_revokes_the_earlier_one(host: Host) -> None:
    first = agent_token_create(host)
    second = agent_token_create(host)
    assert host_of_agent(first) is None
    assert host_of_agent(second) == host


def test_the_hosts_key_is_made_once_and_kept(db: None) -> None:
    host = make_host(host_key="")
    with pytest.raises(Unavailable):
        host_key(host)
    agent_token_create(host)
    host.refresh_from_db()
    key = host_key(host)
    agent_token_create(host)
    host.refresh_from_db()
    assert host_key(host) == key
    assert key not in host.host_key


@pytest.mark.django_db(transaction=True)
def test_of_fifty_that_redeem_the_same_token_exactly_one_gets_in() -> None:
    host = make_host(host_key="")
    token = enrolment_create(actor=make_admin(), host=host).token

    def redeem(_: int) -> str:
        try:
            return enrolment_redeem(token)[0]
        except ApplicationError:
            return ""
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=50) as pool:
        answers = [answer for answer in pool.map(redeem, range(50)) if answer]
    assert len(answers) == 1
    assert host_of_agent(answers[0]) == host
    assert AgentToken.objects.count() == 1
