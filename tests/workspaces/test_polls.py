"""What an agent's poll is answered, and what that costs while nothing changes."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from agent.protocol.report import TombstoneDone
from agent.protocol.state import decode_state
from hosts.choices import TombstoneKind
from hosts.models import AgentToken, Tombstone
from hosts.services.desired import host_desired_changed, tombstone_create
from hosts.services.tokens import agent_token_issue
from tests.factories import make_host, make_workspace
from tests.workspaces.agent_client import BASE, AgentClient, etag_of

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> AgentClient:
    return AgentClient(make_host())


def test_an_unchanged_document_is_304_at_one_look_up(
    agent: AgentClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        make_workspace(agent.host)
    etag = etag_of(agent.get_state())
    with django_assert_num_queries(1):
        response = agent.get_state(etag)
    assert (response.status_code, response.content) == (304, b"")


@pytest.mark.parametrize("mark", ['"{}"', 'W/"{}"', '"{}-gzip"', "{}"])
def test_a_proxy_that_compresses_does_not_make_the_document_a_new_one(
    agent: AgentClient, mark: str
) -> None:
    etag = etag_of(agent.get_state())
    headers = {**agent.headers(), "If-None-Match": mark.format(etag)}
    assert agent.client.get(f"{BASE}/state", headers=headers).status_code == 304


@pytest.mark.parametrize("mark", ["\0", "ü", "a b", "*", "'"])
def test_a_mark_that_is_none_of_ours_is_no_question_for_the_database(
    agent: AgentClient, mark: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    agent.get_state()
    with django_assert_max_num_queries(3) as asked:
        assert agent.get_state(mark).status_code == 200
    assert not [one for one in asked.captured_queries if '"etag" = ' in one["sql"]]


def test_a_touched_but_equal_document_keeps_itsetag_of(agent: AgentClient) -> None:
    etag = etag_of(agent.get_state())
    host_desired_changed(agent.host.id)
    assert agent.get_state(etag).status_code == 304


def test_a_changed_document_has_another_etag_and_carries_the_tombstone(
    agent: AgentClient,
) -> None:
    etag = etag_of(agent.get_state())
    gone = uuid.uuid4()
    tombstone_create(
        host_id=agent.host.id, kind=TombstoneKind.WORKSPACE, object_id=gone, name="trailer-x"
    )
    response = agent.get_state(etag)
    assert response.status_code == 200
    (tombstone,) = decode_state(response.content).tombstones
    assert (tombstone.object_id, tombstone.name) == (str(gone), "trailer-x")

    done = agent.report(TombstoneDone(seq=1, tombstone_id=tombstone.id))
    assert done.json()["accepted"] == [1]
    assert not Tombstone.objects.exists()
    assert agent.get_state(etag).status_code == 304


def test_who_holds_the_newest_document_is_refused_all_the_same_without_a_live_token(
    agent: AgentClient,
) -> None:
    etag = etag_of(agent.get_state())
    AgentToken.objects.update(revoked_at=timezone.now())
    assert agent.get_state(etag).status_code == 401


def test_the_first_use_of_a_new_token_counts_even_while_nothing_changes(
    agent: AgentClient,
) -> None:
    etag = etag_of(agent.get_state())
    AgentToken.objects.update(created_at=timezone.now() - timedelta(days=2))
    (old,) = AgentToken.objects.all()
    agent.token = agent_token_issue(old)
    assert agent.get_state(etag).status_code == 304
    old.refresh_from_db()
    assert old.revoked_at is not None
