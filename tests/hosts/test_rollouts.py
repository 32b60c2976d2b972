"""A new agent image goes to one host, then to some, then to all, and no further than a failure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from hosts.models import AgentRollout, Host
from hosts.rollout import PATIENCE, waves_of
from hosts.selectors import host_settings
from hosts.services.hosts import host_update
from hosts.services.rollouts import rollout_create, rollout_stop, rollouts_advance
from tests.factories import api_client, make_admin, make_host, make_user
from trailer import events
from trailer.audit.models import AuditEntry
from trailer.errors import Conflict, Invalid

pytestmark = pytest.mark.django_db
OLD, NEW = "trailer/agent:1", "docker.io/trailer/agent:2"


@pytest.fixture
def fleet() -> list[Host]:
    now = timezone.now()
    return [
        make_host(f"h{n}", agent_image_running=OLD, agent_image=OLD, last_heartbeat=now)
        for n in range(8)
    ]


@pytest.fixture
def admin() -> Any:
    return make_admin("root")


def ordered() -> list[str]:
    return list(
        Host.objects.filter(agent_image=NEW).order_by("name").values_list("name", flat=True)
    )


def replace(*names: str) -> None:
    """Those hosts' agents have become the new one, and say so under its short name."""
    for host in Host.objects.filter(name__in=names):
        beat(host.name, image="trailer/agent:2", order=host.agent_order)


def beat(name: str, *, image: str = OLD, order: int = 0, message: str = "") -> None:
    """As an agent's heartbeat leaves its host."""
    Host.objects.filter(name=name).update(
        agent_image_running=image,
        agent_image_id=f"sha256:of {image}",
        update_order=order,
        update_image=NEW if message else "",
        update_message=message,
        last_heartbeat=timezone.now(),
    )


def newest() -> AgentRollout:
    return AgentRollout.objects.get()


@pytest.mark.parametrize(
    ("count", "waves"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 2, 3, 3, 3, 3, 3])],
)
def test_waves_are_one_some_and_all(count: int, waves: list[int]) -> None:
    assert waves_of(count) == waves


def test_a_wave_is_ordered_when_the_one_before_has_got_through(
    fleet: list[Host], admin: Any
) -> None:
    rollout_create(actor=admin, image=NEW)
    assert ordered() == ["h0"]
    rollouts_advance(timezone.now())
    assert ordered() == ["h0"]
    replace("h0")
    rollouts_advance(timezone.now())
    assert ordered() == ["h0", "h1", "h2"]
    replace("h1")
    rollouts_advance(timezone.now())
    assert ordered() == ["h0", "h1", "h2"]
    replace("h2")
    rollouts_advance(timezone.now())
    assert len(ordered()) == 8
    replace(*[host.name for host in fleet])
    rollouts_advance(timezone.now())
    assert newest().status == "done"


def test_a_failure_halts_the_rollout_and_takes_the_hosts_order_back(
    fleet: list[Host], admin: Any
) -> None:
    rollout_create(actor=admin, image=NEW)
    before = Host.objects.get(name="h0")
    beat("h0", order=before.agent_order, message="It ended.")
    rollouts_advance(timezone.now())
    rollouts_advance(timezone.now())
    assert (newest().status, newest().message) == ("halted", "h0: It ended.")
    assert ordered() == []
    assert Host.objects.get(name="h0").agent_image == OLD
    after = Host.objects.get(name="h0")
    assert after.desired_version > before.desired_version
    assert after.agent_order == 0
    assert AuditEntry.objects.filter(action="rollout.halted").count() == 1


def test_a_name_that_the_fleet_runs_already_is_done_only_when_the_agents_have_looked(
    admin: Any,
) -> None:
    """`:latest` may mean another image since it was pushed again."""
    latest = "trailer/agent:latest"
    for name in ("h0", "h1"):
        make_host(name)
        beat(name, image=latest)
    rollout_create(actor=admin, image=latest)
    order = Host.objects.get(name="h0").agent_order
    assert host_settings(Host.objects.get(name="h0")).agent_order == order > 0
    rollouts_advance(timezone.now())
    assert [row.status for row in newest().hosts.all()] == ["ordered", "waiting"]
    beat("h0", image=latest, order=order)
    before = Host.objects.get(name="h0").desired_version
    rollouts_advance(timezone.now())
    assert [row.status for row in newest().hosts.all()] == ["done", "ordered"]
    # The order is off: an agent that forgets its answer is not replaced by what comes later.
    assert Host.objects.get(name="h0").agent_order == 0
    assert Host.objects.get(name="h0").desired_version > before


def test_the_failure_of_an_earlier_order_does_not_count_against_a_retry(
    fleet: list[Host], admin: Any
) -> None:
    rollout_create(actor=admin, image=NEW)
    failed = Host.objects.get(name="h0").agent_order
    beat("h0", order=failed, message="It ended.")
    rollouts_advance(timezone.now())
    assert newest().status == "halted"
    retry = rollout_create(actor=admin, image=NEW)
    assert Host.objects.get(name="h0").agent_order != failed
    rollouts_advance(timezone.now())
    assert AgentRollout.objects.get(pk=retry.pk).status == "running"


def test_another_image_that_an_admin_chose_meanwhile_stays(fleet: list[Host], admin: Any) -> None:
    rollout_create(actor=admin, image=NEW)
    host_update(actor=admin, host=fleet[0], agent_image="trailer/agent:mine")
    assert Host.objects.get(name="h0").agent_order == 0
    rollouts_advance(timezone.now() + PATIENCE + timedelta(seconds=1))
    assert newest().status == "halted"
    assert Host.objects.get(name="h0").agent_image == "trailer/agent:mine"


def test_an_agent_of_an_earlier_version_is_judged_by_its_images_name(
    fleet: list[Host], admin: Any
) -> None:
    rollout_create(actor=admin, image=NEW, hosts=[fleet[0].pk])
    Host.objects.filter(name="h0").update(
        agent_image_running="trailer/agent:2", last_heartbeat=timezone.now()
    )
    rollouts_advance(timezone.now())
    assert newest().status == "done"


def test_a_host_that_says_nothing_halts_the_rollout(fleet: list[Host], admin: Any) -> None:
    rollout_create(actor=admin, image=NEW)
    late: datetime = timezone.now() + PATIENCE + timedelta(seconds=1)
    rollouts_advance(late)
    assert newest().status == "halted"
    assert "said nothing" in newest().message


def test_there_is_one_rollout_at_a_time_and_it_can_be_stopped(
    fleet: list[Host], admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout_create(actor=admin, image=NEW)
    with pytest.raises(Conflict, match="under way"):
        rollout_create(actor=admin, image=OLD)
    told: list[str] = []
    monkeypatch.setattr(events, "publish", lambda kind, pk, **_: told.append(f"{kind}:{pk}"))
    rollout_stop(actor=admin)
    assert sorted(told) == sorted(f"host:{host.pk}" for host in fleet), "pages that show it"
    rollouts_advance(timezone.now())
    assert ordered() == ["h0"]
    assert AuditEntry.objects.filter(action="rollout.stop", actor_name="root").exists()
    with pytest.raises(Conflict, match="No rollout"):
        rollout_stop(actor=admin)


def test_agents_that_are_no_containers_are_left_out(admin: Any) -> None:
    make_host("process")
    with pytest.raises(Invalid, match="container"):
        rollout_create(actor=admin, image=NEW)


def test_the_api_starts_and_shows_a_rollout_to_admins_alone(fleet: list[Host], admin: Any) -> None:
    client = api_client(admin)
    chosen = [str(fleet[3].pk), str(fleet[5].pk)]
    made = client.post("/api/v1/agent-rollouts/", {"image": NEW, "hosts": chosen}, format="json")
    assert made.status_code == 201
    assert [(row["name"], row["status"]) for row in made.json()["hosts"]] == [
        ("h3", "ordered"),
        ("h5", "waiting"),
    ]
    assert client.get("/api/v1/agent-rollouts/").json()[0]["status"] == "running"
    bad = client.post("/api/v1/agent-rollouts/", {"image": "no image!"}, format="json")
    assert bad.status_code == 400
    assert client.post("/api/v1/agent-rollouts/stop/").status_code == 202
    stranger = api_client(make_user("stan"))
    assert stranger.get("/api/v1/agent-rollouts/").status_code == 403


@pytest.mark.parametrize("image", ["trailer/agent:2", "agent", "trailer.invalid/agent:2"])
def test_an_agent_that_would_ask_docker_hub_is_ordered_no_name_that_may_be_anybodys(
    fleet: list[Host], admin: Any, image: str
) -> None:
    """Agents of earlier versions say what they can do, and this is not among it."""
    Host.objects.filter(name="h3").update(capabilities=["pull"])
    Host.objects.exclude(name="h3").update(capabilities=["pull", "agent_archives"])
    with pytest.raises(Invalid) as caught:
        rollout_create(actor=admin, image=image)
    [problem] = caught.value.fields["image"]
    assert "The agent of h3 is of an earlier version" in problem
    assert not AgentRollout.objects.exists()
    old, new = Host.objects.get(name="h3"), Host.objects.get(name="h4")
    body = {"agent_image": image}
    client = api_client(admin)
    assert "h3" in client.patch(f"/api/v1/hosts/{old.pk}/", body, format="json").json()["message"]
    assert client.patch(f"/api/v1/hosts/{new.pk}/", body, format="json").status_code == 200
    assert rollout_create(actor=admin, image=image, hosts=[new.pk]).status == "running"


@pytest.mark.parametrize("image", [NEW, "registry.example.org/agent:2", f"sha256:{'a' * 64}"])
def test_an_earlier_agent_is_ordered_an_image_whose_name_says_where_it_is(
    fleet: list[Host], admin: Any, image: str
) -> None:
    Host.objects.update(capabilities=["pull"])
    assert rollout_create(actor=admin, image=image).status == "running"
