"""The admin pages of hosts, networks and volumes go through the services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.apps import apps as registry
from django.contrib import admin
from django.urls import reverse

from hosts.models import Enrolment, Host, Network, Tombstone, Volume
from tests.admin_pages import (
    admin_client,
    errors_of,
    form_values,
    messages_of,
    run_action,
    send_form,
)
from tests.factories import make_host, make_network, make_volume, make_workspace

if TYPE_CHECKING:
    from django.test import Client

    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
HOSTS = "/admin/hosts/host/"
NETWORKS = "/admin/hosts/network/"
VOLUMES = "/admin/hosts/volume/"


@pytest.fixture
def client(admin: User) -> Client:
    return admin_client(admin)


def test_every_list_and_every_form_of_the_admin_opens(client: Client, host: Host) -> None:
    workspace = make_workspace(host)
    make_network(host, workspace.owner)
    make_volume(host, workspace.owner)
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        assert client.get(reverse(f"{name}_changelist")).status_code == 200, name
        assert client.get(reverse(f"{name}_changelist"), {"q": "x"}).status_code == 200, name
        request = client.get("/admin/").wsgi_request
        if page.has_add_permission(request):
            assert client.get(reverse(f"{name}_add")).status_code == 200, name
        row = model._default_manager.first()
        if row is not None:
            url = reverse(f"{name}_change", args=[row.pk])
            assert client.get(url).status_code == 200, name


def test_all_models_of_the_product_have_a_page() -> None:
    apps = {"accounts", "hosts", "images", "workspaces"}
    parts = {"port", "mount", "url", "envvar", "gpuhold", "timer", "rollouthost", "buildsecret"}
    parts |= {"networkattachment"}
    # What somebody signs in with; not for others to look at.
    credentials = {"secondfactor", "recoverycode", "externalidentity"}
    # Thousands of rows that charts show; nobody edits them.
    samples = {"hostsample", "gpusample", "workspacesample", "hostusage", "rollupmark"}
    wanted = {
        model
        for model in registry.get_models()
        if model._meta.app_label in apps
        and model._meta.model_name not in parts | samples | credentials
    }
    assert wanted <= set(admin.site._registry)


def test_a_host_is_made(client: Client) -> None:
    answer = send_form(client, f"{HOSTS}add/", {"name": "beta", "reconcile_interval": "7"})
    assert answer.status_code == 302
    assert Host.objects.get(name="beta").reconcile_interval == 7


def test_an_edit_raises_the_revision_and_what_agents_poll(client: Client, host: Host) -> None:
    before = host.desired_version
    answer = send_form(client, f"{HOSTS}{host.pk}/change/", {"description": "big one"})
    assert answer.status_code == 302
    host.refresh_from_db()
    assert (host.description, host.revision) == ("big one", 2)
    assert host.desired_version == before + 1


def test_a_refused_edit_keeps_the_input_and_names_the_field(client: Client, host: Host) -> None:
    url = f"{HOSTS}{host.pk}/change/"
    answer = send_form(client, url, {"reconcile_interval": "4000", "description": "mine"})
    assert list(errors_of(answer)) == ["reconcile_interval"]
    assert answer.context["adminform"].form["description"].value() == "mine"
    host.refresh_from_db()
    assert (host.revision, host.description) == (1, "")


def test_an_edit_from_an_outdated_page_is_refused(client: Client, host: Host) -> None:
    url = f"{HOSTS}{host.pk}/change/"
    values = form_values(client, url)
    Host.objects.filter(pk=host.pk).update(description="theirs", revision=2)
    answer = client.post(url, values | {"name": "mine"})
    assert "changed in the meantime" in str(errors_of(answer))
    host.refresh_from_db()
    assert (host.name, host.description) == ("alpha", "theirs")


def test_observed_fields_are_shown_but_not_edited(client: Client, host: Host) -> None:
    url = f"{HOSTS}{host.pk}/change/"
    assert "0.1.0" in client.get(url).content.decode()
    send_form(client, url, {"agent_version": "9", "message": "x", "cpu_count": "1"})
    host.refresh_from_db()
    assert (host.agent_version, host.message, host.cpu_count) == ("0.1.0", "", 8)


def test_hosts_are_switched_by_actions(client: Client, host: Host) -> None:
    other = make_host()
    run_action(client, HOSTS, "disable", host, other)
    assert not Host.objects.filter(enabled=True).exists()
    run_action(client, HOSTS, "enable", host)
    host.refresh_from_db()
    assert (host.enabled, host.revision) == (True, 3)


def test_an_enrolment_line_is_shown_once(client: Client, host: Host) -> None:
    answer = run_action(client, HOSTS, "enrol", host)
    assert "docker run -d" in messages_of(answer)
    assert Enrolment.objects.filter(host=host).count() == 1


def test_a_host_in_use_is_not_deleted_and_says_why(client: Client, host: Host) -> None:
    answer = client.post(f"{HOSTS}{host.pk}/delete/", {"post": "yes"}, follow=True)
    assert answer.status_code == 200
    assert "Disable it first" in messages_of(answer)
    assert Host.objects.filter(pk=host.pk).exists()


def test_a_network_is_made_with_the_services_rules(client: Client, host: Host) -> None:
    body = {"name": "lab", "host": str(host.pk), "driver": "bridge"}
    answer = client.post(f"{NETWORKS}add/", body | {"subnet": "10.0.0.1/8"})
    assert "subnet" in errors_of(answer)
    assert client.post(f"{NETWORKS}add/", body).status_code == 302
    network = Network.objects.get()
    assert (network.name, network.owner.username) == ("lab", "root")


def test_deleting_in_the_admin_leaves_an_order_for_the_agent(client: Client) -> None:
    network = make_network(name="lab")
    volume = make_volume(name="data")
    client.post(f"{NETWORKS}{network.pk}/delete/", {"post": "yes"})
    client.post(f"{VOLUMES}{volume.pk}/delete/", {"post": "yes"})
    stones = {(stone.kind, stone.name) for stone in Tombstone.objects.all()}
    assert stones == {("network", "trailer-lab"), ("volume", "trailer-data")}


def test_deleting_several_is_all_or_none(client: Client) -> None:
    free = make_volume()
    used = make_volume()
    workspace = make_workspace(used.host, used.owner, name="lab")
    workspace.mounts.create(volume=used, target="/data")
    body = {"action": "delete_selected", "post": "yes"}
    rows = {"_selected_action": [str(free.pk), str(used.pk)]}
    answer = client.post(VOLUMES, body | rows, follow=True)
    assert "lab" in messages_of(answer)
    assert Volume.objects.count() == 2
    assert not Tombstone.objects.exists()
    rows = {"_selected_action": [str(free.pk)]}
    client.post(VOLUMES, body | rows, follow=True)
    assert Volume.objects.count() == 1


def test_a_made_network_can_not_be_edited(client: Client) -> None:
    network = make_network(name="lab")
    answer = client.post(f"{NETWORKS}{network.pk}/change/", {"name": "other"})
    assert answer.status_code == 403
    network.refresh_from_db()
    assert network.name == "lab"


def test_the_admin_is_for_admins(owner: User) -> None:
    answer = admin_client(owner).get(HOSTS)
    assert answer.status_code == 302
    assert "login" in answer.headers["Location"]
