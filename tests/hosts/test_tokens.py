"""An agent's token is changed while it works: two are good until the new one is used."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone

from hosts import consumers
from hosts.models import AgentToken, Host
from hosts.selectors import host_of_agent, live_agent_token
from hosts.services.enrolment import agent_token_create
from hosts.services.revocation import host_revoke
from hosts.services.tokens import agent_token_first_use, agent_token_issue
from tests.factories import make_admin, make_host
from tests.live.patient_socket import PatientSocket
from trailer.asgi import application
from trailer.audit.models import AuditEntry

if TYPE_CHECKING:
    from pytest_django import Settings

    from trailer.accounts.models import User

BASE = "/api/agent/v1"


def call(token: str, path: str, **body: Any) -> Any:
    """A request of the host's present session."""
    client = Client(headers={"Authorization": f"Bearer {token}"})
    if path in ("check", "state"):
        return client.get(f"{BASE}/{path}", headers={"Trailer-Epoch": "1"})
    return client.post(f"{BASE}/{path}", {"epoch": 1, **body}, content_type="application/json")


def beat(token: str) -> Any:
    return call(token, "heartbeat", agent_version="0.1.0")


def age(hours: float = 25) -> None:
    AgentToken.objects.update(created_at=timezone.now() - timedelta(hours=hours))


@pytest.fixture
def old(host: Host) -> str:
    """A token that is due, of a host whose agent is at work."""
    Host.objects.filter(pk=host.pk).update(epoch=1)
    token = agent_token_create(host)
    age()
    return token


def test_a_token_is_due_after_a_day_and_only_then_is_it_replaced(old: str) -> None:
    assert beat(old).json()["token_due"] is True
    age(hours=23)
    assert beat(old).json()["token_due"] is False
    refused = call(old, "token")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_due")
    assert AgentToken.objects.count() == 1


def test_an_operator_may_keep_tokens_for_ever(old: str, settings: Settings) -> None:
    settings.TRAILER_AGENT_TOKEN_AGE = 0
    assert beat(old).json()["token_due"] is False
    assert call(old, "token").status_code == 409


def test_both_are_good_until_the_new_one_is_used_and_then_the_old_one_is_not(old: str) -> None:
    new = call(old, "token").json()["token"]
    assert beat(old).status_code == 200
    assert AgentToken.objects.filter(revoked_at__isnull=True).count() == 2
    assert beat(new).json()["token_due"] is False
    for path in ("state", "check", "heartbeat", "token", "session", "report"):
        assert call(old, path).status_code == 401, path
    assert beat(new).status_code == 200
    [entry] = AuditEntry.objects.filter(action="host.token")
    assert (entry.actor_name, entry.kind) == ("agent", "host")
    assert new not in str(list(AgentToken.objects.values()))


@pytest.mark.parametrize("path", ["state", "check", "session"])
def test_any_first_request_counts_as_use(old: str, path: str) -> None:
    new = call(old, "token").json()["token"]
    body = {"agent_version": "1", "protocol": 1} if path == "session" else {}
    assert call(new, path, **body).status_code == 200
    assert call(old, "check").status_code == 401


def test_an_answer_that_was_lost_is_asked_for_again_and_the_lost_one_is_worth_nothing(
    old: str,
) -> None:
    lost = call(old, "token").json()["token"]
    new = call(old, "token").json()["token"]
    assert call(lost, "check").status_code == 401
    assert (call(old, "check").status_code, call(new, "check").status_code) == (200, 200)
    assert call(old, "check").status_code == 401


def test_an_agent_that_does_not_know_of_it_goes_on_for_ever(old: str) -> None:
    age(hours=24 * 365)
    for _ in range(3):
        assert beat(old).status_code == 200
    assert AgentToken.objects.count() == 1


def test_an_agent_that_was_overtaken_gets_none(old: str, host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(epoch=2)
    refused = call(old, "token")
    assert (refused.status_code, refused.json()["code"]) == (409, "superseded")


def test_shutting_an_agent_out_ends_both(old: str, host: Host, admin: User) -> None:
    new = call(old, "token").json()["token"]
    host_revoke(actor=admin, host=host)
    assert [call(token, "check").status_code for token in (old, new)] == [401, 401]


def test_a_new_enrolment_ends_both(old: str, host: Host) -> None:
    new = call(old, "token").json()["token"]
    fresh = agent_token_create(host)
    assert [host_of_agent(token) for token in (old, new, fresh)] == [None, None, host]


def test_requests_that_race_agree_on_the_first_use(old: str) -> None:
    new = call(old, "token").json()["token"]
    # As two processes of the server have read it, before either has written.
    first, second = live_agent_token(new), live_agent_token(new)
    assert first is not None
    assert second is not None
    assert agent_token_first_use(first)
    assert agent_token_first_use(second)
    assert AuditEntry.objects.filter(action="host.token").count() == 1


def test_one_that_was_replaced_or_revoked_as_it_came_in_is_refused(
    old: str, host: Host, admin: User
) -> None:
    present = live_agent_token(old)
    assert present is not None
    waiting = live_agent_token(agent_token_issue(present))
    assert waiting is not None
    agent_token_issue(present)
    assert not agent_token_first_use(waiting)
    waiting = live_agent_token(agent_token_issue(present))
    assert waiting is not None
    host_revoke(actor=admin, host=host)
    assert not agent_token_first_use(waiting)
    assert call(old, "token").status_code == 401


def test_years_of_changes_leave_three_rows_and_the_label_key_as_it_was(
    old: str, host: Host
) -> None:
    key, token = Host.objects.get().host_key, old
    for _ in range(5):
        age()
        token = call(token, "token").json()["token"]
        assert beat(token).status_code == 200
    assert AgentToken.objects.filter(host=host).count() <= 3
    assert Host.objects.get().host_key == key


# --- the socket ---


@sync_to_async
def _enrolled() -> tuple[Host, str]:
    host = make_host("far", epoch=1)
    token = agent_token_create(host)
    age()
    return host, token


async def _connected(token: str) -> PatientSocket:
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"trailer-epoch", b"1")]
    socket = PatientSocket(application, "/ws/agent/", headers=headers)
    accepted, _ = await socket.connect(timeout=10)
    assert accepted
    return socket


@pytest.mark.django_db(transaction=True)
async def test_a_socket_goes_on_with_the_new_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumers, "_WATCH_SECONDS", 0.4)
    _, old = await _enrolled()
    agents = await _connected(old)
    new = (await sync_to_async(call)(old, "token")).json()["token"]
    assert (await sync_to_async(beat)(new)).status_code == 200
    await agents.send_to(text_data=f'{{"token": "{new}"}}')
    assert await agents.receive_nothing(timeout=1.5)
    await agents.disconnect()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("frame", ['{"token": "trl_agent_wrong"}', "[]", "{", '{"token": 1}'])
async def test_a_socket_of_the_old_token_alone_is_closed(
    monkeypatch: pytest.MonkeyPatch, frame: str
) -> None:
    monkeypatch.setattr(consumers, "_WATCH_SECONDS", 0.1)
    _, old = await _enrolled()
    socket = await _connected(old)
    new = (await sync_to_async(call)(old, "token")).json()["token"]
    await socket.send_to(text_data=frame)
    assert (await sync_to_async(beat)(new)).status_code == 200
    closed = await socket.receive_output(timeout=10)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
    await socket.disconnect()


@pytest.mark.django_db(transaction=True)
async def test_a_socket_is_not_handed_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "_WATCH_SECONDS", 0.1)
    host, old = await _enrolled()
    other = await sync_to_async(lambda: agent_token_create(make_host("other")))()
    socket = await _connected(old)
    await socket.send_to(text_data=f'{{"token": "{other}"}}')
    admin = await sync_to_async(make_admin)("root")
    await sync_to_async(host_revoke)(actor=admin, host=host)
    assert (await socket.receive_output(timeout=10))["type"] == "websocket.close"
    await socket.disconnect()
