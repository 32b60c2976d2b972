"""The host's limits of builds, looks at registries and free space: API, ranges, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from agent.protocol.state import HostSettings
from hosts.models import Host
from hosts.selectors import host_settings
from tests.factories import api_client

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/hosts/"
DEFAULTS = {
    "build_idle_timeout": 600,
    "build_context_bytes": 64 * 1024**2,
    "build_parallel": 2,
    "update_interval": 300,
    "disk_free_min_bytes": 2 * 1024**3,
}


def test_a_new_host_has_the_documented_limits(admin: User) -> None:
    body = api_client(admin).post(URL, {"name": "beta"}).json()
    assert {name: body[name] for name in DEFAULTS} == DEFAULTS


def test_a_host_that_was_never_changed_sends_the_protocols_defaults() -> None:
    sent = host_settings(Host(name="new"))
    # These two are the server's own addresses, not settings of the host.
    router = msgspec.structs.replace(sent.router, relay_domain="", forward_auth="")
    # And these are meant for hosts whose server knows them.
    sent = msgspec.structs.replace(sent, router=router, block_metadata=None, registry_allow=None)
    assert msgspec.to_builtins(sent) == msgspec.to_builtins(HostSettings())


def test_changed_limits_reach_the_agent(host: Host, admin: User) -> None:
    wanted = {
        "build_idle_timeout": 30,
        "build_context_bytes": 1024**2,
        "build_parallel": 4,
        "update_interval": 60,
        "disk_free_min_bytes": 0,
    }
    before = host.desired_version
    body = api_client(admin).patch(f"{URL}{host.pk}/", wanted).json()
    assert {name: body[name] for name in wanted} == wanted
    host.refresh_from_db()
    assert host.desired_version == before + 1
    settings = msgspec.to_builtins(host_settings(host))
    assert {name: settings[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("build_idle_timeout", 0),
        ("build_idle_timeout", 86_401),
        ("build_context_bytes", 64 * 1024 - 1),
        ("build_context_bytes", 1024**3 + 1),
        ("build_parallel", 0),
        ("build_parallel", 65),
        ("update_interval", 9),
        ("update_interval", 86_401),
        ("disk_free_min_bytes", -1),
        ("disk_free_min_bytes", 1024**5 + 1),
        ("disk_free_min_bytes", 2**70),
        ("build_parallel", "2"),
        ("build_parallel", True),
        ("build_parallel", None),
    ],
)
def test_a_limit_out_of_range_is_refused(
    host: Host, admin: User, name: str, value: object
) -> None:
    answer = api_client(admin).patch(f"{URL}{host.pk}/", {name: value})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [name])
    host.refresh_from_db()
    assert getattr(host, name) == DEFAULTS[name]
