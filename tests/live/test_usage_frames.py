"""Bars over the live socket: one frame per host, with only what the viewer may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.protocol.metrics import HostSample, Metrics, WorkspaceSample
from tests.factories import make_host, make_silent_host, make_token, make_user, make_workspace
from tests.live.patient_socket import PatientSocket
from trailer.asgi import application
from workspaces.live import live_states
from workspaces.metrics import metrics_record

if TYPE_CHECKING:
    from hosts.models import Host
    from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def sample(host: Host, *workspaces: Workspace, cpu: float = 50.0) -> None:
    reports = tuple(
        WorkspaceSample(
            workspace_id=str(workspace.pk),
            cpu_percent=cpu,
            memory_bytes=5,
            memory_limit_bytes=10,
        )
        for workspace in workspaces
    )
    metrics_record(
        host,
        Metrics(host=HostSample(cpu_percent=cpu, load=1.0), workspaces=reports),
        timezone.now(),
    )


def frame(user: Any, host: Host) -> dict[str, Any]:
    resource = f"usage:{host.pk}"
    return live_states(user, [resource], timezone.now())[resource]


def test_a_viewer_gets_the_host_and_only_their_workspaces() -> None:
    host, owner = make_host(), make_user()
    mine, other = make_workspace(host, owner, cpus=2), make_workspace(host)
    sample(host, mine, other)
    seen = frame(owner, host)
    assert (seen["host"]["cpu_percent"], seen["host"]["load"], seen["fresh"]) == (50.0, 1.0, True)
    assert seen["workspaces"] == {
        str(mine.pk): {
            "cpu_percent": 50.0,
            "cpu_limit_percent": 200.0,
            "memory_bytes": 5,
            "memory_limit_bytes": 10,
        }
    }


def test_a_host_without_samples_or_in_silence_says_so() -> None:
    user, pending, silent = make_user(), make_host(online=False), make_silent_host()
    sample(silent)
    assert frame(user, pending)["host"]["cpu_percent"] is None
    assert frame(user, pending)["at"] is None
    assert frame(user, silent)["fresh"] is False


async def test_a_heartbeat_reaches_the_subscribers_of_its_host() -> None:
    host, owner = await sync_to_async(make_host)(), await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(host, owner)
    key = await sync_to_async(make_token)(owner)
    headers = [(b"authorization", f"Token {key}".encode())]
    socket = PatientSocket(application, "/ws/live/", headers=headers)
    connected, _ = await socket.connect()
    assert connected
    await socket.send_json_to({"subscribe": [f"usage:{host.pk}"]})
    first = await socket.receive_json_from(5)
    assert (first["resource"], first["workspaces"]) == (f"usage:{host.pk}", {})
    await sync_to_async(sample)(host, workspace, cpu=75.0)
    second = await socket.receive_json_from(5)
    assert second["host"]["cpu_percent"] == 75.0
    assert second["workspaces"][str(workspace.pk)]["cpu_percent"] == 75.0
    assert await socket.receive_nothing(0.2)
    await socket.disconnect()
