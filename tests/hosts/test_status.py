"""When a host's agent is still worth asking."""

from datetime import timedelta

import pytest
from django.utils import timezone

from hosts.models import Host
from hosts.status import is_out_of_reach


@pytest.mark.parametrize(
    ("silent", "interval", "out"),
    [(None, 15, True), (2, 1, False), (50, 1, False), (61, 1, True), (61, 30, False)],
)
def test_an_agent_that_is_merely_late_is_asked(
    silent: int | None, interval: int, out: bool
) -> None:
    now = timezone.now()
    heard = None if silent is None else now - timedelta(seconds=silent)
    host = Host(last_heartbeat=heard, heartbeat_interval=interval)
    assert is_out_of_reach(host, now) is out


def test_an_agent_that_was_shut_out_is_not_asked() -> None:
    now = timezone.now()
    assert is_out_of_reach(Host(last_heartbeat=now, agent_revoked_at=now), now)
