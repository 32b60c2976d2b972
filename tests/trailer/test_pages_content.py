"""What the pages show: hooks of the contract, live states, filters, empty states."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from hosts.models import Cycle
from tests.factories import (
    make_admin,
    make_host,
    make_image,
    make_network,
    make_silent_host,
    make_volume,
    make_workspace,
)
from trailer.sealed import seal
from workspaces.models import EnvVar, Event, Mount, Port, Url
from workspaces.services import workspace_create, workspace_update

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def badge(html: str, resource: str) -> tuple[str, str]:
    """Status and label of the one badge of a resource."""
    found = re.findall(
        rf'<span class="badge [^"]*" data-resource="{resource}" data-status="(\w+)">([^<]*)<', html
    )
    assert len(found) == 1, f"{len(found)} badges of {resource}"
    status, label = found[0]
    return status, label


def test_every_badge_carries_its_resource_status_and_label(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, status="building", progress=40)
    running = make_workspace(
        host, owner, "runs", image=image, observed_status="running", observed_revision=1
    )
    fresh = make_workspace(host, owner, "made", image=image)
    network = make_network(host, owner, status="error", message="The subnet is taken.")
    volume = make_volume(host, owner, status="created")
    for address in ("/", "/workspaces/", f"/workspaces/{running.pk}/"):
        assert badge(page(client, address), f"workspace:{running.pk}") == ("running", "Running")
    expected = ("deployment_pending", "Deployment pending")
    assert badge(page(client, "/workspaces/"), f"workspace:{fresh.pk}") == expected
    for address in ("/images/", f"/images/{image.pk}/"):
        assert badge(page(client, address), f"image:{image.pk}") == ("building", "Building")
    for address in ("/", "/hosts/", f"/hosts/{host.pk}/"):
        assert badge(page(client, address), f"host:{host.pk}") == ("online", "Online")
    networks = page(client, "/networks/")
    assert badge(networks, f"network:{network.pk}") == ("error", "Error")
    assert f'data-message-for="network:{network.pk}">The subnet is taken.<' in networks
    assert badge(page(client, "/volumes/"), f"volume:{volume.pk}") == ("created", "Created")


def test_buttons_are_enabled_by_what_the_status_allows(
    client: Client, host: Host, owner: User
) -> None:
    workspace = make_workspace(host, owner, observed_status="running", observed_revision=1)
    html = page(client, f"/workspaces/{workspace.pk}/")
    buttons = dict(re.findall(r'data-action="(\w+)"[^>]*?( disabled)?>', html))
    assert buttons == {
        "start": " disabled",
        "stop": "",
        "redeploy": "",
        "snapshot": "",
        "clone": "",
    }


def test_what_a_silent_host_last_said_is_marked_stale(client: Client, owner: User) -> None:
    host = make_silent_host("quiet")
    workspace = make_workspace(host, owner, observed_status="running", observed_revision=1)
    html = page(client, f"/workspaces/{workspace.pk}/")
    assert badge(html, f"workspace:{workspace.pk}") == ("running", "Running")
    assert "is-stale" in html
    mark = re.search(rf'data-stale-for="workspace:{workspace.pk}">(.*?)</span>', html, re.DOTALL)
    assert mark is not None
    assert "stale since" in mark.group(1)
    assert "quiet" in page(client, "/").split("Needs attention")[1]


def test_an_image_page_has_a_log_viewer_of_its_newest_build(
    client: Client, host: Host, owner: User
) -> None:
    image = make_image(host, owner, status="building", progress=40)
    html = page(client, f"/images/{image.pk}/")
    assert f'data-log="build:{image.builds.get().pk}"' in html
    assert re.search(rf'<progress[^>]* value="40"[^>]*data-progress-for="image:{image.pk}"', html)


def test_hostile_names_and_messages_stay_text(client: Client, host: Host, owner: User) -> None:
    bad = '"><script>alert(1)</script>'
    image = make_image(host, owner, bad, reference=bad, message=bad, status="failed")
    workspace = make_workspace(
        host, owner, bad[:60], image=image, description=bad, message=bad, command=[bad]
    )
    Event.objects.create(
        workspace=workspace,
        at=timezone.now(),
        kind=bad[:32],
        cause=bad,
        changes=[{"field": bad, "from": bad, "to": {bad: bad}}],
    )
    EnvVar.objects.create(workspace=workspace, name=bad, value=bad)
    for address in (
        "/",
        "/workspaces/",
        f"/workspaces/?search={bad}",
        "/workspaces/new/",
        f"/workspaces/{workspace.pk}/",
        f"/workspaces/{workspace.pk}/?tab=events",
        f"/workspaces/{workspace.pk}/?tab=settings",
        "/images/",
        f"/images/{image.pk}/",
    ):
        assert "<script>alert" not in page(client, address)


def test_no_page_needs_inline_script_or_style(client: Client, host: Host, owner: User) -> None:
    workspace = make_workspace(host, owner)
    for address in ("/", "/workspaces/", f"/workspaces/{workspace.pk}/", "/images/", "/hosts/"):
        answer = client.get(address)
        html = answer.content.decode()
        assert not re.search(r"<script(?![^>]* src=)", html)
        assert not re.search(r"<[^>]* (?:style|on\w+)=", html)
        assert "<style" not in html
        assert "script-src 'self';" in answer.headers["Content-Security-Policy"]


def test_the_edit_form_holds_the_values_but_no_secret(
    client: Client, host: Host, owner: User
) -> None:
    workspace = make_workspace(host, owner, cpus="1.500", memory_bytes=1536 * 1024**2)
    EnvVar.objects.create(workspace=workspace, name="PLAIN", value="seen")
    hidden = EnvVar(workspace=workspace, name="HIDDEN", is_secret=True)
    hidden.secret_token = seal(hidden, "secret_token", "s3cr3t-value")
    hidden.save()
    Port.objects.create(workspace=workspace, container_port=80, host_port=8080)
    Mount.objects.create(workspace=workspace, volume=make_volume(host, owner), target="/data")
    html = page(client, f"/workspaces/{workspace.pk}/?tab=settings")
    for name, value in (("cpus", "1.5"), ("memory_bytes", "1.5 GiB"), ("target", "/data")):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', html), name
    for value in ("PLAIN", "seen", "HIDDEN", "8080"):
        assert f'value="{value}"' in html
    assert "s3cr3t-value" not in html
    assert "s3cr3t-value" not in page(client, f"/workspaces/{workspace.pk}/")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"alpha-notebook", "beta-web", "gamma-db"}),
        ("search=web", {"beta-web"}),
        ("search=postgres", {"gamma-db"}),
        ("status=running", {"alpha-notebook"}),
        ("status=deployment_pending", {"beta-web", "gamma-db"}),
        ("status=nonsense", set()),
        ("host=nonsense", set()),
        ("search=web&status=running", set()),
    ],
)
def test_the_list_is_filtered_by_the_server(
    query: str, names: set[str], client: Client, host: Host, owner: User
) -> None:
    make_workspace(host, owner, "alpha-notebook", observed_status="running", observed_revision=1)
    make_workspace(host, owner, "beta-web")
    postgres = make_image(host, owner, "db", reference="postgres:17")
    make_workspace(host, owner, "gamma-db", image=postgres)
    html = page(client, f"/workspaces/?{query}")
    assert set(re.findall(r"/workspaces/[0-9a-f-]{36}/\" title=\"([^\"]+)\">", html)) == names


def test_a_list_is_ordered_and_paged(client: Client, host: Host, owner: User) -> None:
    image = make_image(host, owner)
    for number in range(55):
        make_workspace(host, owner, f"w{number:03}", image=image)
    names = re.compile(r">(w\d+)</a>")
    first = page(client, "/workspaces/?ordering=-name")
    assert names.findall(first)[:2] == ["w054", "w053"]
    assert "1–50 of 55" in first
    assert len(names.findall(page(client, "/workspaces/?page=2"))) == 5
    assert len(names.findall(page(client, "/workspaces/?page=nonsense"))) == 50


def test_htmx_gets_only_the_part_it_asks_for(client: Client, host: Host, owner: User) -> None:
    make_workspace(host, owner, "alpha")
    answer = client.get(
        "/workspaces/?part=rows&search=alp&status=", headers={"HX-Request": "true"}
    )
    html = answer.content.decode()
    assert ">alpha</a>" in html
    assert "<html" not in html
    assert answer.headers["HX-Replace-Url"] == "/workspaces/?search=alp"
    assert "HX-Request" in answer.headers["Vary"]
    assert "<html" in page(client, "/workspaces/?part=rows")


def test_empty_pages_say_what_to_do_first(client: Client, owner: User) -> None:
    assert "First steps" in page(client, "/")
    assert "No host to put it on" in page(client, "/workspaces/new/")
    assert "ask one to connect a machine" in page(client, "/hosts/")
    for address, words in (
        ("/workspaces/", "No workspaces yet"),
        ("/images/", "No images yet"),
        ("/networks/", "No networks yet"),
        ("/volumes/", "No volumes yet"),
        ("/registries/", "No registry credentials"),
    ):
        assert words in page(client, address)
    for address in ("/networks/", "/volumes/"):
        assert "Connect a host first" in page(client, address)
    host = make_host()
    for address in ("/networks/", "/volumes/"):
        assert "Connect a host first" not in page(client, address)
    make_workspace(host, owner)
    assert "Nothing matches" in page(client, "/workspaces/?search=zzz")


def test_events_show_their_cause_and_every_field(client: Client, host: Host, owner: User) -> None:
    workspace = make_workspace(host, owner)
    Event.objects.create(
        workspace=workspace,
        at=timezone.now(),
        kind="changed",
        cause="Changed: memory_bytes.",
        changes=[{"field": "memory_bytes", "from": 2**30, "to": None, "effect": "replace"}],
        actor=owner,
    )
    html = page(client, f"/workspaces/{workspace.pk}/?tab=events")
    assert f"{owner.username} changed memory from 1 GiB to no limit" in html
    assert "<del>1 GiB</del>" in html
    assert "<ins>no limit</ins>" in html


def test_cycles_show_their_steps_and_causes(host: Host) -> None:
    now = timezone.now()
    step: dict[str, object] = {
        "step": "create",
        "resource": "workspace:1",
        "name": "trailer-web",
        "cause": "missing",
    }
    step |= {"outcome": "failed", "started_at": "", "duration_ms": 31, "message": "No space left."}
    Cycle.objects.create(
        host=host,
        epoch=1,
        number=7,
        trigger="nudge",
        started_at=now,
        finished_at=now + timedelta(seconds=1.5),
        outcome="failed",
        cleanup="done",
        steps=[step],
    )
    client = Client()
    client.force_login(make_admin())
    html = page(client, f"/hosts/{host.pk}/?tab=cycles")
    for words in ("#7", "nudge", "1.5 s", "trailer-web", "missing", "31 ms", "No space left."):
        assert words in html


def test_revisions_tell_what_each_changed_and_lead_back_to_all_but_the_present(
    client: Client, host: Host, owner: User
) -> None:
    workspace = workspace_create(
        actor=owner,
        data={"name": "web", "host": str(host.pk), "image": str(make_image(host, owner).pk)},
    )
    workspace_update(actor=owner, workspace=workspace, data={"env": {"MODE": "<new>"}})
    html = page(client, f"/workspaces/{workspace.pk}/?tab=revisions")
    assert re.findall(r"Revision (\d+)<", html) == ["2", "1"]
    assert re.findall(r'data-rollback="(\d+)"', html) == ["1"]
    assert "&lt;new&gt;" in html
    assert "Changed: env." in html


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ("public", "open to everybody"),
        ("users", "for signed-in users with access"),
        ("owner", "for the owner alone"),
    ],
)
def test_a_url_says_for_whom_it_opens(
    client: Client, host: Host, owner: User, auth: str, words: str
) -> None:
    workspace = make_workspace(host, owner)
    Url.objects.create(workspace=workspace, subdomain="a", domain="b.example", port=80, auth=auth)
    html = page(client, f"/workspaces/{workspace.pk}/")
    assert f"to port 80, {words}<" in html
