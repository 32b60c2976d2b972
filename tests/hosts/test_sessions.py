"""What a host's agent says about itself: sessions, heartbeats, silence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from agent.protocol.session import (
    AddressRange,
    EngineInfo,
    Gpu,
    Heartbeat,
    NetworkInterface,
    SessionRequest,
)
from hosts.choices import HostStatus
from hosts.models import Host
from hosts.selectors import host_settings
from hosts.services.sessions import host_heartbeat, host_session_open, hosts_mark_silent
from hosts.status import host_status
from tests.factories import make_host, make_silent_host
from trailer import events
from trailer.errors import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was told to the browsers."""
    told: list[str] = []
    monkeypatch.setattr(events, "publish", lambda kind, pk, **_: told.append(f"{kind}:{pk}"))
    return told


def _beat(**fields: Any) -> Heartbeat:
    engine = EngineInfo(name="docker", version="20.10.24", runtimes=("runc",))
    defaults: dict[str, Any] = {
        "epoch": 1,
        "agent_version": "0.1.0",
        "engine": engine,
        "cpu_count": 8,
        "memory_bytes": 16 * 1024**3,
    }
    return Heartbeat(**(defaults | fields))


def test_every_session_gets_a_higher_epoch(host: Host) -> None:
    request = SessionRequest(agent_version="1.2.3", protocol=1)
    first = host_session_open(host, request)
    second = host_session_open(host, request)
    host.refresh_from_db()
    assert second == first + 1 == host.epoch
    assert host.agent_version == "1.2.3"


def test_addresses_in_use_are_kept_for_as_long_as_the_session_that_told_them() -> None:
    """An agent of another version, which opens the next one, may not tell any."""
    host = make_host()
    lan = AddressRange(cidr="192.168.1.0/24", interface="eth0", direct=True)
    host_heartbeat(host, _beat(epoch=host.epoch, address_ranges=(lan,)))
    host_heartbeat(host, _beat(epoch=host.epoch))
    host.refresh_from_db()
    assert host.address_ranges == [msgspec.to_builtins(lan)]
    host_session_open(host, SessionRequest(agent_version="1.2.3", protocol=1))
    host.refresh_from_db()
    assert host.address_ranges is None


def test_a_heartbeat_makes_a_host_online_and_stores_what_it_says() -> None:
    host = make_host(online=False)
    beat = _beat(
        epoch=host.epoch,
        gpus=(Gpu(id="GPU-1", name="A100", memory_bytes=5),),
        interfaces=(NetworkInterface(name="eth1", addresses=("10.0.0.2/24",)),),
        capabilities=("gpu", "bind"),
    )
    assert host_heartbeat(host, beat) is True
    host.refresh_from_db()
    assert host_status(host, timezone.now()) == HostStatus.ONLINE
    assert host.engine["version"] == "20.10.24"
    assert [gpu["name"] for gpu in host.gpus] == ["A100"]
    assert [interface["name"] for interface in host.interfaces] == ["eth1"]
    assert host.capabilities == ["bind", "gpu"]
    assert (host.cpu_count, host.memory_bytes) == (8, 16 * 1024**3)


def test_a_heartbeat_changes_no_desired_column(host: Host) -> None:
    before = (host.revision, host.desired_version, host.updated_at)
    host_heartbeat(host, _beat(agent_version="9"))
    host.refresh_from_db()
    assert (host.revision, host.desired_version, host.updated_at) == before


def test_what_a_broken_engine_can_not_tell_keeps_its_last_value(host: Host) -> None:
    host_heartbeat(host, _beat(capabilities=("gpu",)))
    host_heartbeat(host, _beat(engine=None, cpu_count=0, memory_bytes=0, message="No answer."))
    host.refresh_from_db()
    assert host.engine["version"] == "20.10.24"
    assert host.capabilities == ["gpu"]
    assert host.cpu_count == 8
    assert host.message == "No answer."


def test_equal_heartbeats_tell_the_browsers_nothing(host: Host, published: list[str]) -> None:
    host_heartbeat(host, _beat())
    published.clear()
    assert host_heartbeat(host, _beat()) is False
    assert host_heartbeat(host, _beat(disk_free_bytes=123)) is False
    assert published == []
    host_heartbeat(host, _beat(message="The disk is full."))
    assert published == [f"host:{host.pk}"]


def test_a_silent_host_that_speaks_again_is_told(published: list[str]) -> None:
    host = make_silent_host(silent_published=True)
    assert host_heartbeat(host, _beat()) is True
    assert published == [f"host:{host.pk}"]
    host.refresh_from_db()
    assert host.silent_published is False


def test_a_heartbeat_of_an_overtaken_agent_is_refused(host: Host) -> None:
    Host.objects.filter(pk=host.pk).update(epoch=2, agent_version="new")
    with pytest.raises(Conflict) as caught:
        host_heartbeat(host, _beat(epoch=1, agent_version="old"))
    assert caught.value.code == "superseded"
    host.refresh_from_db()
    assert host.agent_version == "new"


def test_text_and_numbers_no_database_takes_are_made_storable(host: Host) -> None:
    beat = _beat(
        agent_version="1\0" * 100,
        message="a\0b",
        cpu_count=2**80,
        memory_bytes=2**80,
        interfaces=tuple(NetworkInterface(name=f"i\0{n}") for n in range(1000)),
    )
    host_heartbeat(host, beat)
    host.refresh_from_db()
    assert host.message == "ab"
    assert len(host.agent_version) == 64
    assert len(host.interfaces) == 256
    assert "\0" not in host.interfaces[0]["name"]


def test_hosts_that_fell_silent_are_told_once(published: list[str]) -> None:
    make_host("fresh")
    make_host("never-seen", online=False)
    host = make_silent_host("silent")
    now = timezone.now()
    assert hosts_mark_silent(now) == [host.pk]
    assert published == [f"host:{host.pk}"]
    assert hosts_mark_silent(now) == []


def test_silence_is_three_of_the_hosts_own_heartbeats() -> None:
    now = timezone.now()
    slow = make_host(heartbeat_interval=60, last_heartbeat=now - timedelta(seconds=170))
    quick = make_host(heartbeat_interval=5, last_heartbeat=now - timedelta(seconds=16))
    assert hosts_mark_silent(now) == [quick.pk]
    assert hosts_mark_silent(now + timedelta(seconds=11)) == [slow.pk]


def test_the_agents_settings_are_the_hosts_columns() -> None:
    host = make_host(
        enabled=False,
        reconcile_interval=3,
        router_mode="traefik-files",
        router_managed=True,
        nvidia_driver_image="driver:1",
        metrics_retention_days=2,
    )
    settings = host_settings(host)
    assert (settings.enabled, settings.reconcile_interval) == (False, 3.0)
    assert (settings.router.mode, settings.router.managed) == ("traefik-files", True)
    assert settings.nvidia.driver_image == "driver:1"
    assert settings.metrics.retention_days == 2
