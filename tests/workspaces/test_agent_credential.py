"""The credential for the agent's own image: whose it is, and when the host hears of it."""

from __future__ import annotations

import pytest

from hosts.models import Host
from images.services.registries import registry_create, registry_delete, registry_update
from tests.factories import make_admin, make_host, make_user
from workspaces.control.compile import host_state

SERVER = "registry.example.com"
IMAGE = f"{SERVER}/trailer/agent:2"


@pytest.fixture
def host(db: None) -> Host:
    return make_host(agent_image=IMAGE)


def told(host: Host) -> tuple[str, str] | None:
    found = host_state(Host.objects.get(pk=host.pk)).agent_credential
    return None if found is None else (found.username, found.password)


def test_an_administrators_credential_for_that_very_server_is_sent(host: Host) -> None:
    admin, user = make_admin(), make_user("somebody")
    registry_create(actor=user, server=SERVER, username="theirs", password="p")
    registry_create(actor=admin, server="other.example.com", username="other", password="p")
    assert told(host) is None
    registry_create(actor=admin, server=SERVER, username="fleet", password="sesame")
    assert told(host) == ("fleet", "sesame")
    Host.objects.filter(pk=host.pk).update(agent_image="", agent_image_running=IMAGE)
    assert told(host) == ("fleet", "sesame")
    for elsewhere in ("trailer/agent:2", "sha256:" + "0" * 64, ""):
        Host.objects.filter(pk=host.pk).update(agent_image=elsewhere, agent_image_running="")
        assert told(host) is None


def test_the_host_hears_of_every_change_of_it(host: Host) -> None:
    admin = make_admin()
    versions = [Host.objects.get().desired_version]
    registry = registry_create(actor=admin, server=SERVER, username="fleet", password="old")
    versions.append(Host.objects.get().desired_version)
    registry_update(actor=admin, registry=registry, password="new")
    versions.append(Host.objects.get().desired_version)
    assert told(host) == ("fleet", "new")
    registry_delete(actor=admin, registry=registry)
    versions.append(Host.objects.get().desired_version)
    assert told(host) is None
    assert versions == sorted(set(versions))
