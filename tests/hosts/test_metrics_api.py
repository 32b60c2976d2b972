"""Series over REST: shapes, spans, bad input, and who may read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from hosts.models import GpuSample, Host, HostSample
from tests.factories import api_client, make_admin, make_host, make_user, make_workspace
from workspaces.models import WorkspaceSample

pytestmark = pytest.mark.django_db


def path(host: Host, query: str = "") -> str:
    return f"/api/v1/hosts/{host.pk}/metrics/{query}"


def sample(host: Host, age: int, **fields: Any) -> None:
    at = int(timezone.now().timestamp()) - age
    HostSample.objects.create(host=host, resolution=0, at=at, **fields)


def test_a_hosts_series_is_oldest_first_with_its_gpus() -> None:
    host = make_host(gpus=[{"id": "GPU-1", "name": "A100", "memory_bytes": 5, "index": 0}])
    sample(host, 30, cpu_percent=20.0, memory_bytes=2)
    sample(host, 60, cpu_percent=10.0, memory_bytes=1)
    at = int(timezone.now().timestamp()) - 30
    GpuSample.objects.create(host=host, gpu="GPU-1", resolution=0, at=at, utilization_percent=99.0)
    body = api_client(make_user()).get(path(host)).json()
    assert (body["resolution"], body["count"]) == (15, 2)
    assert (body["next"], body["previous"]) == (None, None)
    assert [point["cpu_percent"] for point in body["results"]] == [10.0, 20.0]
    assert [point["memory_bytes"] for point in body["results"]] == [1, 2]
    moment = datetime.fromisoformat(body["results"][0]["at"])
    assert abs(timezone.now() - moment - timedelta(seconds=60)) < timedelta(seconds=15)
    assert [(gpu["id"], gpu["name"]) for gpu in body["gpus"]] == [("GPU-1", "A100")]
    assert body["gpus"][0]["results"][0]["utilization_percent"] == 99.0


def test_since_and_until_bound_the_series() -> None:
    host, now = make_host(), timezone.now()
    for age in (100, 200, 300):
        sample(host, age, cpu_percent=float(age))
    query = f"?since={(now - timedelta(seconds=250)).isoformat().replace('+00:00', 'Z')}"
    query += f"&until={(now - timedelta(seconds=150)).strftime('%Y-%m-%dT%H:%M:%S')}"
    body = api_client(make_admin()).get(path(host, query)).json()
    assert [point["cpu_percent"] for point in body["results"]] == [200.0]


def test_a_long_series_stays_short() -> None:
    host, now = make_host(heartbeat_interval=1), int(timezone.now().timestamp())
    HostSample.objects.bulk_create(
        HostSample(host=host, resolution=0, at=now - age, cpu_percent=1.0)
        for age in range(1, 3600)
    )
    body = api_client(make_admin()).get(path(host)).json()
    assert 400 < body["count"] <= 510
    assert body["resolution"] == 8
    coarse = api_client(make_admin()).get(path(host, "?resolution=600")).json()
    assert (coarse["resolution"], coarse["count"]) == (600, 7)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?since=yesterday", "since"),
        ("?since=99999999999999999999", "since"),
        ("?since=0001-01-01T00:00:00%2B14:00", "since"),
        ("?until=%00", "until"),
        ("?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "since"),
        ("?resolution=-1", "resolution"),
        ("?resolution=1e3", "resolution"),
        ("?resolution=0", "resolution"),
    ],
)
def test_a_bad_span_is_refused_with_a_sentence(query: str, field: str) -> None:
    answer = api_client(make_admin()).get(path(make_host(), query))
    assert answer.status_code == 400, answer.content
    assert answer.json()["fields"][field][0].endswith((".", "!"))


def test_spans_without_samples_are_empty() -> None:
    host, client = make_host(), api_client(make_admin())
    for query in ("", "?since=2999-01-01T00:00:00Z", "?since=1970-01-01T00:00:00Z"):
        body = client.get(path(host, query)).json()
        assert (body["count"], body["results"]) == (0, []), query


def test_an_unescaped_plus_sign_in_a_time_is_understood() -> None:
    host = make_host()
    sample(host, 10, cpu_percent=1.0)
    since = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    body = api_client(make_admin()).get(path(host, f"?since={since}")).json()
    assert body["count"] == 1


def test_a_workspaces_series_is_for_those_who_may_see_it() -> None:
    owner = make_user()
    workspace = make_workspace(owner=owner)
    at = int(timezone.now().timestamp()) - 20
    WorkspaceSample.objects.create(
        workspace=workspace,
        resolution=0,
        at=at,
        cpu_percent=150.0,
        memory_bytes=5,
        memory_limit_bytes=10,
        processes=2,
    )
    address = f"/api/v1/workspaces/{workspace.pk}/metrics/"
    body = api_client(owner).get(address).json()
    assert body["count"] == 1
    point = body["results"][0]
    assert (point["cpu_percent"], point["memory_bytes"]) == (150.0, 5)
    assert (point["memory_limit_bytes"], point["processes"]) == (10, 2)
    assert api_client(make_user()).get(address).status_code == 404
    assert api_client(owner).get(f"{address}?since=x").status_code == 400
