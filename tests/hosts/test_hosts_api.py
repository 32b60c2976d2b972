"""Hosts over REST: who may, what is refused, and what a change does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from hosts.models import Host
from tests.factories import (
    api_client,
    make_host,
    make_image,
    make_network,
    make_silent_host,
    make_volume,
    make_workspace,
)

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/hosts/"


def test_anonymous_callers_are_sent_away(host: Host) -> None:
    client = api_client()
    for method, url in (("get", URL), ("post", URL), ("get", f"{URL}{host.pk}/")):
        answer = getattr(client, method)(url)
        assert answer.status_code == 401
        assert answer.json()["code"] == "not_signed_in"


def test_users_read_hosts_but_only_admins_change_them(
    host: Host, owner: User, admin: User
) -> None:
    client = api_client(owner)
    assert client.get(URL).json()["count"] == 1
    assert client.get(f"{URL}{host.pk}/").status_code == 200
    assert client.post(URL, {"name": "beta"}).status_code == 403
    assert client.patch(f"{URL}{host.pk}/", {"enabled": False}).status_code == 403
    assert client.delete(f"{URL}{host.pk}/").status_code == 403
    assert client.post(f"{URL}{host.pk}/enrolment/").status_code == 403
    assert client.get(f"{URL}{host.pk}/cycles/").status_code == 403
    assert api_client(admin).post(URL, {"name": "beta"}).status_code == 201


def test_a_read_only_token_can_not_write(host: Host, admin: User) -> None:
    client = api_client(admin, scope="read")
    assert client.get(URL).status_code == 200
    assert client.post(URL, {"name": "beta"}).status_code == 403


def test_a_new_host_is_pending_and_has_the_documented_defaults(admin: User) -> None:
    body = api_client(admin).post(URL, {"name": "beta"}).json()
    assert body["status"] == "pending"
    assert body["enabled"] is True
    assert (body["reconcile_interval"], body["heartbeat_interval"]) == (10, 15)
    assert body["router"] == {
        "mode": "none",
        "network": "",
        "entrypoint": "",
        "certresolver": "",
        "managed": False,
        "image": "",
        "domains": [],
        "warning": "",
    }
    assert body["nvidia"]["deploy_driver"] is False
    assert body["metrics"] == {"host": True, "gpu": True, "workspace": True, "retention_days": 7}
    assert body["engine"]["runtimes"] == []
    assert (body["gpus"], body["interfaces"], body["last_heartbeat"]) == ([], [], None)


def test_nested_objects_are_written_partially(host: Host, admin: User) -> None:
    client = api_client(admin)
    router = {"mode": "traefik-files", "network": "edge"}
    body = client.patch(f"{URL}{host.pk}/", {"router": router}).json()
    assert (body["router"]["mode"], body["router"]["network"]) == ("traefik-files", "edge")
    body = client.patch(f"{URL}{host.pk}/", {"router": {"entrypoint": "web"}}).json()
    assert (body["router"]["mode"], body["router"]["entrypoint"]) == ("traefik-files", "web")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": 5}, "name"),
        ({"name": ["x"]}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"name": "-x"}, "name"),
        ({"name": "x "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "alpha"}, "name"),
        ({"name": "b", "reconcile_interval": 0}, "reconcile_interval"),
        ({"name": "b", "reconcile_interval": 3601}, "reconcile_interval"),
        ({"name": "b", "reconcile_interval": -1}, "reconcile_interval"),
        ({"name": "b", "reconcile_interval": "10"}, "reconcile_interval"),
        ({"name": "b", "reconcile_interval": 1.5}, "reconcile_interval"),
        ({"name": "b", "heartbeat_interval": 10**30}, "heartbeat_interval"),
        ({"name": "b", "heartbeat_interval": True}, "heartbeat_interval"),
        ({"name": "b", "build_timeout": 0}, "build_timeout"),
        ({"name": "b", "enabled": "yes"}, "enabled"),
        ({"name": "b", "enabled": 1}, "enabled"),
        ({"name": "b", "router": "none"}, "router"),
        ({"name": "b", "router": {"mode": "nginx"}}, "router.mode"),
        ({"name": "b", "router": {"mode": {"a": 1}}}, "router.mode"),
        ({"name": "b", "router": {"network": "a b"}}, "router.network"),
        ({"name": "b", "router": {"network": "bridge"}}, "router.network"),
        ({"name": "b", "router": {"network": "host"}}, "router.network"),
        ({"name": "b", "router": {"network": "none"}}, "router.network"),
        ({"name": "b", "router": {"network": "default"}}, "router.network"),
        ({"name": "b", "router": {"moed": "none"}}, "router.moed"),
        ({"name": "b", "router": {"domains": "apps.example.com"}}, "router.domains"),
        ({"name": "b", "router": {"domains": [5]}}, "router.domains.0"),
        ({"name": "b", "router": {"domains": ["*.example.com"]}}, "router.domains"),
        ({"name": "b", "router": {"domains": ["a.example.com:0"]}}, "router.domains"),
        ({"name": "b", "router": {"domains": ["a.example.com:70000"]}}, "router.domains"),
        ({"name": "b", "router": {"domains": ["https://a.example.com"]}}, "router.domains"),
        ({"name": "b", "router": {"domains": ["a.example.com"] * 257}}, "router.domains"),
        ({"name": "b", "metrics": {"retention_days": 0}}, "metrics.retention_days"),
        ({"name": "b", "maintenance_schedule": "every day"}, "maintenance_schedule"),
        ({"name": "b", "maintenance_schedule": "99 * * * *"}, "maintenance_schedule"),
        ({"name": "b", "description": "x" * 70_000}, "description"),
        ({"name": "b", "description": "é" * 40_000}, "description"),
        ({"name": "b", "agent_image": "with space"}, "agent_image"),
        ({"name": "b", "nmae": "c"}, "nmae"),
        ({"name": "b", "status": "online"}, "status"),
        ({"name": "b", "id": "5"}, "id"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    host: Host, admin: User, body: dict[str, Any], field: str
) -> None:
    answer = api_client(admin).post(URL, body)
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid"
    assert field in answer.json()["fields"]
    assert Host.objects.count() == 1


def test_the_engines_own_networks_are_refused_for_a_router_with_what_to_do(
    host: Host, admin: User
) -> None:
    answer = api_client(admin).patch(f"{URL}{host.pk}/", {"router": {"network": "bridge"}})
    (sentence,) = answer.json()["fields"]["router.network"]
    assert sentence == (
        "The network bridge is the engine's own, which no container can join under a name. "
        "Name another network, or none: a managed router then gets one of its own."
    )


def test_a_change_raises_the_revision_and_what_agents_poll(host: Host, admin: User) -> None:
    client = api_client(admin)
    before = host.desired_version
    body = client.patch(f"{URL}{host.pk}/", {"reconcile_interval": 30}).json()
    host.refresh_from_db()
    assert (body["revision"], host.desired_version) == (2, before + 1)


def test_a_change_to_the_same_value_is_no_change(host: Host, admin: User) -> None:
    body = api_client(admin).patch(f"{URL}{host.pk}/", {"enabled": True}).json()
    assert body["revision"] == 1


def test_a_change_from_an_outdated_view_is_refused(host: Host, admin: User) -> None:
    client = api_client(admin)
    url = f"{URL}{host.pk}/"
    assert client.patch(url, {"description": "a"}, headers={"If-Match": "1"}).status_code == 200
    answer = client.patch(url, {"description": "b"}, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_moved")
    assert client.patch(url, {"description": "b"}, headers={"If-Match": "x"}).status_code == 400
    assert client.patch(url, {"description": "b"}, headers={"If-Match": "2"}).status_code == 200


def test_renaming_to_a_taken_name_is_refused(host: Host, admin: User) -> None:
    other = make_host("beta")
    answer = api_client(admin).patch(f"{URL}{other.pk}/", {"name": "alpha"})
    assert answer.status_code == 400
    assert "name" in answer.json()["fields"]


def test_an_enabled_host_is_not_deleted(host: Host, admin: User) -> None:
    answer = api_client(admin).delete(f"{URL}{host.pk}/")
    assert answer.status_code == 409
    assert "Disable it first" in answer.json()["message"]
    assert Host.objects.filter(pk=host.pk).exists()


def test_a_host_that_holds_something_is_not_deleted_and_says_what(admin: User) -> None:
    host = make_host(enabled=False)
    workspace = make_workspace(host, name="lab")
    make_network(host, workspace.owner, name="net-a")
    make_volume(host, workspace.owner, name="data")
    answer = api_client(admin).delete(f"{URL}{host.pk}/")
    assert answer.status_code == 409
    for name in ("lab", "net-a", "data", workspace.image.name):
        assert name in answer.json()["message"]


def test_a_disabled_empty_host_is_deleted(admin: User) -> None:
    host = make_host(enabled=False)
    assert api_client(admin).delete(f"{URL}{host.pk}/").status_code == 204
    assert not Host.objects.filter(pk=host.pk).exists()


def test_the_status_follows_heartbeats_and_the_switch(admin: User) -> None:
    make_host("online")
    make_host("never-seen", online=False)
    make_silent_host("silent")
    make_host("switched-off", enabled=False)
    rows = api_client(admin).get(URL).json()["results"]
    assert {row["name"]: row["status"] for row in rows} == {
        "online": "online",
        "never-seen": "pending",
        "silent": "offline",
        "switched-off": "disabled",
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("status=offline", ["silent"]),
        ("name=online", ["online"]),
        ("search=LENT", ["silent"]),
        ("enabled=false", ["off"]),
        ("ordering=-name", ["silent", "online", "off"]),
        ("page_size=1&page=2&ordering=name", ["online"]),
    ],
)
def test_lists_are_filtered_searched_ordered_and_paged(
    admin: User, query: str, names: list[str]
) -> None:
    make_host("online")
    make_silent_host("silent")
    make_host("off", enabled=False)
    rows = api_client(admin).get(f"{URL}?{query}").json()["results"]
    assert [row["name"] for row in rows] == names


@pytest.mark.parametrize("query", ["status=gone", "search=a%00b", "name=a%00b"])
def test_malformed_filters_are_refused(admin: User, query: str) -> None:
    assert api_client(admin).get(f"{URL}?{query}").status_code == 400


@pytest.mark.parametrize(
    "path", ["5/", "not-a-uuid/", "00000000-0000-0000-0000-000000000000/", "%00/"]
)
def test_what_is_not_there_is_not_found(admin: User, path: str) -> None:
    answer = api_client(admin).get(f"{URL}{path}")
    assert answer.status_code == 404
    assert answer.json()["message"]


def test_put_is_not_offered(host: Host, admin: User) -> None:
    answer = api_client(admin).put(f"{URL}{host.pk}/", {"name": "x"})
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_lists_take_the_same_queries_however_many_hosts_there_are(
    admin: User, django_assert_num_queries: Any
) -> None:
    client = api_client(admin)
    make_image(make_host())
    with django_assert_num_queries(5):
        client.get(URL)
    for _ in range(5):
        make_host()
    with django_assert_num_queries(4):
        client.get(URL)


def test_a_domain_is_registered_for_one_host_only(host: Host, admin: User) -> None:
    client = api_client(admin)
    address = f"{URL}{host.pk}/"
    entries = ["Apps.example.com:8443", "b.example.com"]
    answer = client.patch(address, {"router": {"domains": entries}})
    assert answer.json()["router"]["domains"] == entries
    other = make_host("other")
    refused = client.patch(f"{URL}{other.pk}/", {"router": {"domains": ["apps.example.com"]}})
    assert refused.status_code == 400
    assert host.name in refused.json()["fields"]["router.domains"][0]
    assert client.patch(address, {"router": {"domains": entries[1:]}}).status_code == 200
    answer = client.patch(f"{URL}{other.pk}/", {"router": {"domains": ["apps.example.com"]}})
    assert answer.status_code == 200


def test_the_settings_page_shows_registered_domains_as_the_form_sends_them(
    host: Host, admin: User
) -> None:
    Host.objects.filter(pk=host.pk).update(router_domains=["a.example.com", "b.example.com:8443"])
    browser = Client()
    browser.force_login(admin)
    page = browser.get(f"/hosts/{host.pk}/?tab=settings").content.decode()
    assert 'name="router.domains" type="text" value="a.example.com, b.example.com:8443"' in page
    assert 'data-encode="list"' in page
