"""An engine that does not answer its agent, and what the server shows of what runs there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.protocol.session import Heartbeat
from hosts.models import Host
from hosts.services.sessions import host_heartbeat
from hosts.status import host_status, is_fresh, is_heard, stale_since
from tests.factories import (
    api_client,
    make_admin,
    make_host,
    make_image,
    make_network,
    make_volume,
    make_workspace,
)
from trailer import events
from trailer.pages.badges import message_of, state_of
from workspaces.live import live_states

pytestmark = pytest.mark.django_db

SENT = "2026-03-01T12:00:30.000Z"
SILENT = "2026-03-01T12:00:20.000Z"


def beat(host: Host, **fields: Any) -> bool:
    told = {"engine_silent_since": "", "agent_time": SENT, **fields}
    turned = host_heartbeat(host, Heartbeat(epoch=1, agent_version="1", **told))
    host.refresh_from_db()
    return turned


@pytest.fixture
def freshness(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(events, "publish_freshness", lambda pk: told.append(str(pk)))
    return told


def test_a_silent_engine_makes_its_host_stale_and_an_answer_fresh_again(
    freshness: list[str],
) -> None:
    host, now = make_host(), timezone.now()
    assert beat(host, engine_silent_since=SILENT) is True
    assert not is_fresh(host, now)
    assert is_heard(host, now)
    assert host_status(host, now) == "online"
    assert beat(host) is True
    assert is_fresh(host, timezone.now())
    assert host.engine_silent_since is None
    assert freshness == [str(host.pk)] * 2


def test_the_start_of_a_silence_is_by_the_servers_clock_and_stays(freshness: list[str]) -> None:
    host = make_host()
    beat(host, engine_silent_since=SILENT)
    first = host.engine_silent_since
    assert first is not None
    assert timedelta(seconds=9) < timezone.now() - first < timedelta(seconds=15)
    assert beat(host, engine_silent_since="2026-03-01T12:00:25.000Z") is False
    assert host.engine_silent_since == first
    assert freshness == [str(host.pk)]


@pytest.mark.parametrize(
    ("silent", "sent"),
    [
        ("yesterday", SENT),
        (SILENT, ""),
        (SENT, SILENT),
        ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_times_that_say_nothing_are_no_reason_to_believe_the_engine(
    silent: str, sent: str
) -> None:
    host = make_host()
    beat(host, engine_silent_since=silent, agent_time=sent)
    since = host.engine_silent_since
    assert since is not None
    assert timezone.now() - timedelta(days=366) < since <= timezone.now()


@pytest.mark.parametrize(
    ("message", "is_silent"),
    [
        ("The container engine cannot be reached: Connection refused", True),
        ("The container engine did not answer in time.", True),
        ("The container engine has not answered for 7 seconds.", False),
        ("Only 1 GB of the disk is free.", False),
        ("", False),
    ],
)
def test_of_an_agent_without_pings_the_message_is_read(message: str, is_silent: bool) -> None:
    host = make_host()
    beat(host, engine_silent_since=None, message=message)
    assert (host.engine_silent_since is not None) is is_silent


def test_an_agent_with_pings_is_believed_whatever_its_message_says() -> None:
    host = make_host()
    beat(host, message="The container engine did not answer in time.")
    assert is_fresh(host, timezone.now())


def test_stale_since_is_the_earlier_of_both_silences() -> None:
    now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    early, late = now - timedelta(hours=2), now - timedelta(hours=1)
    host = Host(last_heartbeat=late, engine_silent_since=early, heartbeat_interval=15)
    assert stale_since(host, now) == early
    host.engine_silent_since = None
    assert stale_since(host, now) == late
    host.last_heartbeat = now
    assert stale_since(host, now) is None


def test_everything_on_the_host_says_that_the_engine_does_not_answer_and_since_when() -> None:
    since = datetime(2026, 3, 1, 12, 0, 20, tzinfo=UTC)
    sentence = "The engine does not answer since 2026-03-01 12:00:20 UTC."
    admin, host = make_admin(), make_host(engine_silent_since=since)
    image = make_image(host, admin)
    workspace = make_workspace(host, admin, image=image, message="Its port 80 is taken.")
    network, volume = make_network(host, admin), make_volume(host, admin)
    client = api_client(admin)
    for kind, row in (
        ("workspaces", workspace),
        ("images", image),
        ("networks", network),
        ("volumes", volume),
    ):
        for told in (
            client.get(f"/api/v1/{kind}/{row.pk}/").json(),
            client.get(f"/api/v1/{kind}/").json()["results"][0],
            live_states(admin, [f"{kind[:-1]}:{row.pk}"], timezone.now())[f"{kind[:-1]}:{row.pk}"],
        ):
            assert told["fresh"] is False
            assert told["message"].startswith(sentence)
        assert state_of(row).since == since
        assert message_of(row, admin).startswith(sentence)
    told = client.get(f"/api/v1/workspaces/{workspace.pk}/").json()
    assert told["message"] == f"{sentence} Its port 80 is taken."
    assert client.get(f"/api/v1/hosts/{host.pk}/").json()["message"].startswith(sentence)
