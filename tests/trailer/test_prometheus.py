"""`/metrics`: Prometheus can read it, staff may, and no name breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agent.protocol.metrics import HostSample as HostReport
from agent.protocol.metrics import Metrics
from agent.protocol.metrics import WorkspaceSample as WorkspaceReport
from tests.factories import (
    api_client,
    make_admin,
    make_host,
    make_silent_host,
    make_user,
    make_workspace,
)
from workspaces.metrics import metrics_record

if TYPE_CHECKING:
    from hosts.models import Host

pytestmark = pytest.mark.django_db


def read(text: str) -> dict[str, dict[str, float]]:
    """Name of the metric -> name of the host or workspace, or status -> value."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.labels.get("name") or sample.labels.get("status") or ""
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def busy_host(name: str) -> Host:
    host = make_host(name)
    workspace = make_workspace(host, name=f"on-{name}"[:63])
    use = WorkspaceReport(workspace_id=str(workspace.pk), cpu_percent=150.0, memory_bytes=5)
    sample = HostReport(cpu_percent=12.5, memory_bytes=3, memory_total_bytes=8, load=0.5)
    metrics_record(host, Metrics(host=sample, workspaces=(use,)), timezone.now())
    return host


def test_a_scrape_tells_hosts_workspaces_and_builds() -> None:
    busy_host("alpha")
    silent = make_silent_host("omega")
    text = api_client(make_admin(), scope="read").get("/metrics").content.decode()
    found = read(text)
    assert found["trailer_host_up"] == {"alpha": 1, "omega": 0}
    assert found["trailer_host_last_heartbeat_age_seconds"][silent.name] > 3500
    assert found["trailer_host_cpu_percent"] == {"alpha": 12.5}
    assert found["trailer_host_memory_used_bytes"] == {"alpha": 3}
    assert found["trailer_workspaces"] == {"deployment_pending": 1}
    assert found["trailer_workspace_cpu_percent"] == {"on-alpha": 150.0}
    assert found["trailer_builds"] == {"finished": 1}
    assert found["process_cpu_seconds_total"][""] > 0


def test_only_staff_may_scrape() -> None:
    assert api_client().get("/metrics").status_code == 401
    assert api_client(make_user()).get("/metrics").status_code == 403
    browser = Client()
    assert browser.get("/metrics").status_code == 401
    browser.force_login(make_admin())
    answer = browser.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")


def test_a_hostile_name_stays_one_label() -> None:
    name = 'x"} 1\ntrailer_host_up{name="fake'
    make_host(name)
    found = read(api_client(make_admin()).get("/metrics").content.decode())
    assert found["trailer_host_up"] == {name: 1}


def test_the_number_of_queries_does_not_grow_with_the_fleet() -> None:
    client = api_client(make_admin())
    client.get("/metrics")

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get("/metrics").status_code == 200
        return len(captured)

    few = queries()
    for number in range(5):
        busy_host(f"host-{number}")
    assert queries() == few
