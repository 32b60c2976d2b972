"""The agent's own client and token file against the server's own views, without a network."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import requests
from django.test import Client
from django.utils import timezone

from agent.errors import Revoked
from agent.protocol.session import EnrolRequest
from agent.server.http import HttpServer
from agent.store.identity import Identity, load_identity, save_identity
from agent.store.token import StoredToken
from hosts.models import AgentToken, Host
from hosts.services.enrolment import enrolment_create
from hosts.services.revocation import host_revoke

if TYPE_CHECKING:
    from pathlib import Path

    from trailer.accounts.models import User


class Direct(requests.adapters.BaseAdapter):
    """Hands a request to the views; `lose` drops their answers on the way back."""

    lose = False

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        body = request.body or b""
        answer = Client().generic(
            request.method or "",
            urlsplit(request.url or "").path,
            body if isinstance(body, bytes) else body.encode(),
            content_type="application/json",
            headers=dict(request.headers),
        )
        if self.lose:
            raise requests.ConnectionError("lost")
        response = requests.Response()
        response.status_code, response._content = answer.status_code, answer.content
        return response

    def close(self) -> None:
        """There is nothing open."""


class Agent:
    def __init__(self, folder: Path, line: str, wire: Direct) -> None:
        self.folder, self.wire = folder, wire
        reply = self._client("").enrol(EnrolRequest(token=line))
        save_identity(
            folder, Identity(token=reply.token, host_id=reply.host_id, host_key=reply.host_key)
        )
        self.start()

    def _client(self, token: Any) -> HttpServer:
        client = HttpServer("http://127.0.0.1", token=token)
        client._session().mount("http://", self.wire)
        return client

    def start(self) -> None:
        """A process that knows only what is in the folder."""
        self.client = self._client(StoredToken(self.folder, self.stored))

    @property
    def stored(self) -> Identity:
        identity = load_identity(self.folder)
        assert identity is not None
        return identity


@pytest.fixture
def agent(tmp_path: Path, host: Host, admin: User) -> Agent:
    line = enrolment_create(actor=admin, host=host)
    return Agent(tmp_path, line.token, Direct())


def later() -> None:
    AgentToken.objects.update(created_at=timezone.now() - timedelta(days=2))


def test_a_new_token_every_day_and_each_one_ends_the_one_before(agent: Agent) -> None:
    used = [agent.client.token()]
    for _ in range(3):
        later()
        assert agent.client.renew_token(epoch=1)
        agent.client.check()
        used.append(agent.client.token())
    assert len(set(used)) == 4
    assert agent.stored.token == used[-1]
    for token in used[:-1]:
        with pytest.raises(Revoked):
            agent._client(token).check()


def test_answers_that_are_lost_at_any_point_lock_nobody_out(agent: Agent) -> None:
    later()
    agent.wire.lose = True
    with pytest.raises(Exception, match="cannot be reached"):
        agent.client.renew_token(epoch=1)
    agent.wire.lose = False
    agent.client.check()
    assert agent.client.renew_token(epoch=1)
    agent.wire.lose = True
    with pytest.raises(Exception, match="cannot be reached"):
        # The server has seen the new one used, the agent does not know.
        agent.client.check()
    agent.wire.lose = False
    agent.start()
    agent.client.check()
    assert AgentToken.objects.filter(revoked_at__isnull=True).count() == 1


def test_a_restored_database_is_answered_with_the_token_that_it_has(
    agent: Agent, host: Host
) -> None:
    backup = list(AgentToken.objects.values())
    for _ in range(3):
        later()
        agent.client.renew_token(epoch=1)
        agent.client.check()
    AgentToken.objects.all().delete()
    AgentToken.objects.bulk_create(AgentToken(**row) for row in backup)
    agent.client.check()
    later()
    assert agent.client.renew_token(epoch=1)
    agent.client.check()


def test_a_backup_from_before_the_host_joined_ends_in_a_clear_sentence(agent: Agent) -> None:
    AgentToken.objects.all().delete()
    with pytest.raises(Revoked, match="Enrol the host again"):
        agent.client.check()


def test_shut_out_between_two_tokens_is_shut_out(agent: Agent, host: Host, admin: User) -> None:
    later()
    agent.client.renew_token(epoch=1)
    host_revoke(actor=admin, host=host)
    with pytest.raises(Revoked, match="Enrol the host again"):
        agent.client.check()
