"""Cron expressions of hosts become maintenance windows, once each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hosts.models import Host
from hosts.selectors import host_settings
from hosts.services.maintenance import maintenance_order_due
from tests.factories import make_host

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 11, 16, 2, 59, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_a_window_is_ordered_once_when_it_begins() -> None:
    host = make_host("north", maintenance_schedule="0 3 * * *")
    assert maintenance_order_due(MONDAY) == 0
    assert maintenance_order_due(MONDAY + 30 * timedelta(seconds=1)) == 0
    before = Host.objects.get().desired_version
    assert maintenance_order_due(MONDAY + MINUTE) == 1
    assert maintenance_order_due(MONDAY + 2 * MINUTE) == 0
    assert maintenance_order_due(MONDAY + timedelta(days=1, minutes=1)) == 1
    host.refresh_from_db()
    assert host.maintenance == 2
    assert host.desired_version > before
    assert host_settings(host).maintenance == 2


def test_hosts_without_a_schedule_and_disabled_ones_have_no_window() -> None:
    make_host("plain")
    make_host("off", enabled=False, maintenance_schedule="* * * * *")
    for n in range(3):
        assert maintenance_order_due(MONDAY + n * MINUTE) == 0


def test_windows_that_were_missed_are_made_up_for_by_one() -> None:
    make_host("north", maintenance_schedule="0 3 * * *")
    maintenance_order_due(MONDAY)
    assert maintenance_order_due(MONDAY + timedelta(days=5, minutes=10)) == 1
    assert maintenance_order_due(MONDAY + timedelta(days=5, minutes=11)) == 0
