"""Which domains the URLs of a host's workspaces may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host
from tests.factories import api_client, make_admin, make_host
from workspaces.models import Url
from workspaces.urls.place import url_address

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene

pytestmark = pytest.mark.django_db


def url(domain: str, subdomain: str = "box") -> dict[str, Any]:
    return {"subdomain": subdomain, "domain": domain, "port": 80}


def created(scene: Scene, domain: str, **fields: Any) -> Any:
    return scene.client().post("/api/v1/workspaces/", scene.body(urls=[url(domain)], **fields))


def register(host: Host, *entries: str) -> None:
    Host.objects.filter(pk=host.pk).update(router_domains=list(entries))


def test_without_registered_domains_every_one_is_taken(scene: Scene) -> None:
    assert created(scene, "whatever.example.org").status_code == 201


@pytest.mark.parametrize(
    ("domain", "status"),
    [
        ("apps.example.com", 201),
        ("APPS.example.com", 201),
        # Through the server, which is no matter of the router.
        ("localhost", 201),
        ("other.example.com", 400),
        ("example.com", 400),
        ("deeper.apps.example.com", 400),
    ],
)
def test_with_registered_domains_only_those_are(scene: Scene, domain: str, status: int) -> None:
    register(scene.host, "apps.example.com:8443")
    answer = created(scene, domain)
    assert answer.status_code == status
    if status == 400:
        assert "apps.example.com" in answer.json()["fields"]["urls.0.domain"][0]


def test_an_administrator_registers_a_domain_first_like_everybody(scene: Scene) -> None:
    register(scene.host, "apps.example.com")
    body = scene.body(urls=[url("other.example.com")])
    assert api_client(make_admin()).post("/api/v1/workspaces/", body).status_code == 400


def test_a_domain_of_another_host_is_refused(scene: Scene) -> None:
    register(make_host("edge"), "apps.example.com")
    answer = created(scene, "apps.example.com")
    assert answer.status_code == 400
    assert "edge" in answer.json()["fields"]["urls.0.domain"][0]


def test_what_was_there_before_blocks_no_other_edit(scene: Scene) -> None:
    workspace = scene.create(urls=[url("old.example.com")])
    register(scene.host, "apps.example.com")
    address = f"/api/v1/workspaces/{workspace.pk}/"
    assert scene.client().patch(address, {"description": "x"}).status_code == 200
    old = {**url("old.example.com"), "port": 81}
    both = [old, url("apps.example.com", "two")]
    assert scene.client().patch(address, {"urls": both}).status_code == 200
    both = [old, url("other.example.com", "two")]
    assert scene.client().patch(address, {"urls": both}).status_code == 400


def test_the_address_has_the_port_that_was_registered(scene: Scene) -> None:
    scene.create(urls=[{**url("apps.example.com"), "tls": True}, url("plain.example.com")])
    register(scene.host, "Apps.example.com:8443", "plain.example.com")
    found = Url.objects.select_related("workspace__host").order_by("domain")
    assert [url_address(row) for row in found] == [
        *("https://box.apps.example.com:8443/", "http://box.plain.example.com/")
    ]
