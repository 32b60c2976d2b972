"""The platform's own containers: what settings ask for, and what agents report of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from django.test import Client

from agent.protocol.report import ResourceStatus
from agent.protocol.state import HostSettings, NvidiaSettings, RouterSettings
from hosts.models import Host
from hosts.prerequisites import desired_prerequisites, router_warning
from hosts.selectors import prerequisites_shown
from hosts.services.observed import prerequisite_observed
from tests.factories import api_client, make_admin, make_host
from trailer.errors import Invalid


def _settings(**fields: object) -> HostSettings:
    return HostSettings(router=RouterSettings(**fields))  # type: ignore[arg-type]


def test_only_a_managed_router_that_reads_files_is_asked_for() -> None:
    assert desired_prerequisites(HostSettings()) == ()
    assert desired_prerequisites(_settings(mode="traefik-labels", managed=True)) == ()
    assert desired_prerequisites(_settings(mode="traefik-files", managed=False)) == ()
    (router,) = desired_prerequisites(_settings(mode="traefik-files", managed=True))
    assert (router.kind, router.spec.network) == ("router", "trailer.router")
    assert "--entrypoints.web.address=:80" in router.spec.command
    assert not any("docker" in word for word in router.spec.command)


@pytest.mark.parametrize(
    ("mode", "managed", "begin"),
    [
        ("none", False, ""),
        ("traefik-files", True, ""),
        ("traefik-labels", False, ""),
        ("traefik-files", False, "No router serves URLs here"),
        ("traefik-labels", True, "Trailer runs a router only in mode traefik-files"),
        ("none", True, "Trailer runs a router only in mode traefik-files"),
    ],
)
def test_settings_that_give_no_router_say_so(mode: str, managed: bool, begin: str) -> None:
    warning = router_warning(mode=mode, managed=managed)
    assert warning.startswith(begin)
    assert bool(warning) is bool(begin)


@pytest.mark.django_db
def test_the_operator_reads_it_where_the_mode_is_set() -> None:
    admin, host = make_admin(), make_host()
    client = api_client(admin)
    body = {"router": {"mode": "traefik-files"}}
    answer = client.patch(f"/api/v1/hosts/{host.pk}/", body, format="json").json()
    assert answer["router"]["warning"].startswith("No router serves URLs here")
    browser = Client()
    browser.force_login(admin)
    page = browser.get(f"/hosts/{host.pk}/?tab=settings").content.decode()
    assert 'data-notice="router"' in page
    answer = client.patch(
        f"/api/v1/hosts/{host.pk}/", {"router": {"managed": True}}, format="json"
    )
    assert answer.json()["router"]["warning"] == ""
    assert 'data-notice="router"' not in browser.get(f"/hosts/{host.pk}/").content.decode()


def test_the_routers_settings_are_followed() -> None:
    (router,) = desired_prerequisites(
        _settings(
            mode="traefik-files",
            managed=True,
            image="proxy:1",
            network="edge",
            entrypoint="websecure",
            certresolver="le",
        )
    )
    assert (router.image, router.spec.network) == ("proxy:1", "edge")
    assert [port.host_port for port in router.spec.ports] == [443]
    assert "--certificatesresolvers.le.acme.tlschallenge=true" in router.spec.command


NVIDIA: dict[str, Any] = {
    "deploy_driver": True,
    "driver_image": "driver:550",
    "deploy_toolkit": True,
    "toolkit_image": "toolkit:1",
}


def test_nvidias_containers_are_those_of_the_golden_specs() -> None:
    driver, toolkit = desired_prerequisites(HostSettings(nvidia=NvidiaSettings(**NVIDIA)))
    assert json.loads(msgspec.json.encode(driver)) == {
        "kind": "nvidia-driver",
        "image": "driver:550",
        "spec": {
            "entrypoint": ["nvidia-driver"],
            "command": ["init"],
            "env": {},
            "ports": [],
            "mounts": [
                bind("/lib/firmware"),
                bind("/run/nvidia", propagation="shared"),
                bind("/var/log"),
            ],
            "network": "",
            "privileged": True,
            "host_pid": True,
        },
    }
    assert (toolkit.kind, toolkit.image) == ("nvidia-toolkit", "toolkit:1")
    assert toolkit.spec.entrypoint == ("nvidia-toolkit",)
    assert {mount.target for mount in toolkit.spec.mounts} >= {"/run/nvidia", "/etc/docker"}
    assert toolkit.spec.env["RUNTIME_CONFIG"] == "/etc/docker/daemon.json"
    assert toolkit.spec.privileged


def bind(path: str, *, propagation: str = "") -> dict[str, object]:
    return {
        "target": path,
        "source": path,
        "kind": "bind",
        "read_only": False,
        "propagation": propagation,
    }


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ({"deploy_driver": False}, ["nvidia-toolkit"]),
        ({"deploy_toolkit": False}, ["nvidia-driver"]),
        ({"deploy_driver": False, "deploy_toolkit": False}, []),
    ],
)
def test_what_is_switched_off_is_not_asked_for(off: dict[str, bool], left: list[str]) -> None:
    nvidia = NvidiaSettings(**{**NVIDIA, **off})
    assert [p.kind for p in desired_prerequisites(HostSettings(nvidia=nvidia))] == left


@pytest.mark.django_db
def test_a_driver_cannot_be_deployed_from_nowhere() -> None:
    host, client = make_host(), api_client(make_admin())
    url = f"/api/v1/hosts/{host.pk}/"
    answer = client.patch(url, {"nvidia": {"deploy_driver": True}})
    assert answer.status_code == 400
    assert "image" in answer.json()["fields"]["nvidia.driver_image"][0]
    body = {"nvidia": {"deploy_driver": True, "driver_image": "driver:550"}}
    assert client.patch(url, body).status_code == 200
    assert [row["kind"] for row in client.get(url).json()["prerequisites"]] == ["nvidia-driver"]


def _report(seq: int, status: str = "created", message: str = "") -> ResourceStatus:
    return ResourceStatus(
        seq=seq, resource="prerequisite", object_id="router", status=status, message=message
    )


@pytest.mark.django_db
class TestReports:
    @pytest.fixture
    def host(self) -> Host:
        return make_host(router_mode="traefik-files", router_managed=True)

    def test_what_the_agent_says_is_shown(self, host: Host) -> None:
        assert prerequisites_shown(host)[0]["status"] == "pending"
        assert prerequisite_observed(host, _report(1, "error", "Port 80 is taken."), epoch=1)
        answer = api_client(make_admin()).get(f"/api/v1/hosts/{host.pk}/").json()
        (shown,) = answer["prerequisites"]
        assert (shown["kind"], shown["status"]) == ("router", "error")
        assert shown["message"] == "Port 80 is taken."

    def test_an_older_report_changes_nothing(self, host: Host) -> None:
        assert prerequisite_observed(host, _report(5), epoch=2)
        assert not prerequisite_observed(host, _report(9, "error"), epoch=1)
        assert not prerequisite_observed(host, _report(4, "error"), epoch=2)
        host.refresh_from_db()
        assert host.prerequisites["router"]["status"] == "created"

    def test_a_switched_off_one_is_not_shown(self, host: Host) -> None:
        prerequisite_observed(host, _report(1), epoch=1)
        Host.objects.filter(pk=host.pk).update(router_managed=False)
        host.refresh_from_db()
        assert prerequisites_shown(host) == []

    def test_nonsense_is_refused(self, host: Host) -> None:
        with pytest.raises(Invalid):
            prerequisite_observed(host, _report(1, "dancing"), epoch=1)
