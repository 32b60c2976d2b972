"""What the pages say about updates of agents and about a restored database."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from hosts.models import Cycle, Host
from hosts.services.hosts import host_confirm_state
from hosts.services.restored import hosts_hold_after_restore
from hosts.services.rollouts import rollout_create
from tests.factories import api_client, make_admin, make_host, make_user

pytestmark = pytest.mark.django_db


def page(user: object, path: str, **headers: str) -> str:
    client = Client()
    client.force_login(user)  # type: ignore[arg-type]
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_hosts_page_offers_an_update_to_admins_and_shows_how_it_goes() -> None:
    admin = make_admin("root")
    host = make_host("north", agent_image_running="trailer/agent:1")
    assert 'data-api="/api/v1/agent-rollouts/"' in page(admin, "/hosts/")
    rollout_create(actor=admin, image="trailer/agent:2")
    shown = page(admin, "/hosts/")
    assert 'data-rollout="running"' in shown
    assert "north (wave 1, ordered)" in shown
    # The page draws it again with every word about one of its hosts.
    part = page(admin, "/hosts/?part=rollout", **{"HX-Request": "true"})
    assert f'data-follows="hosts host:{host.pk}"' in part
    assert 'data-rollout="running"' in part
    assert "<table" not in part
    assert "agent-rollouts" not in page(make_user("stan"), "/hosts/")


def test_a_hosts_page_says_why_its_agent_was_not_replaced() -> None:
    host = make_host("north", update_image="trailer/agent:2", update_message="It ended.")
    shown = page(make_admin("root"), f"/hosts/{host.pk}/")
    assert 'data-notice="update"' in shown
    assert shown.count("It ended.") == 1
    body = api_client(make_admin("rose")).get(f"/api/v1/hosts/{host.pk}/").json()
    assert body["message"] == "The agent could not be replaced by trailer/agent:2: It ended."


def test_the_engines_trouble_comes_before_a_failed_replacement() -> None:
    host = make_host("north", message="The engine hangs.", update_message="It ended.")
    shown = page(make_admin("root"), f"/hosts/{host.pk}/")
    assert ("The engine hangs." in shown, shown.count("It ended.")) == (True, 1)


def test_a_restored_host_asks_an_admin_to_confirm() -> None:
    host = make_host("north")
    assert hosts_hold_after_restore() == 1
    shown = page(make_admin("root"), f"/hosts/{host.pk}/")
    assert f"/api/v1/hosts/{host.pk}/confirm-state/" in shown
    assert "confirm-state" not in page(make_user("stan"), f"/hosts/{host.pk}/")
    assert Host.objects.get().state_restored


def held_cycle(host: Host, number: int, cleanup: str = "held") -> None:
    now = timezone.now()
    Cycle.objects.create(
        host=host,
        epoch=1,
        number=number,
        trigger="state",
        started_at=now,
        finished_at=now,
        outcome="ok",
        cleanup=cleanup,
        message="5 of 6 containers vanished.",
    )


def test_a_host_whose_cleanup_is_held_asks_for_a_confirmation_until_it_has_one() -> None:
    host, admin = make_host("north"), make_admin("root")
    where = f"/hosts/{host.pk}/"
    held_cycle(host, 1)
    shown = page(admin, where)
    assert 'data-notice="held"' in shown
    assert "5 of 6 containers vanished." in shown
    assert f"/api/v1/hosts/{host.pk}/confirm-state/" in shown
    # The sentence names what anybody keeps there, as cycles do.
    assert "vanished" not in page(make_user("stan"), where)
    host_confirm_state(actor=admin, host=host)
    assert "confirm-state" not in page(admin, where)


def test_a_cleanup_that_went_on_by_itself_asks_for_nothing() -> None:
    host, admin = make_host("north"), make_admin("root")
    held_cycle(host, 1)
    held_cycle(host, 2, "done")
    assert "confirm-state" not in page(admin, f"/hosts/{host.pk}/")


def test_a_backup_restored_twice_is_confirmed_with_another_epoch_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent knows the epoch of the first time: the second must be above it."""
    host, admin = make_host("north"), make_admin("root")
    first = host_confirm_state(actor=admin, host=host).state_epoch
    again = host_confirm_state(actor=admin, host=host).state_epoch
    assert again > first
    Host.objects.filter(pk=host.pk).update(state_epoch=1)
    later = timezone.now() + timedelta(minutes=1)
    monkeypatch.setattr("hosts.services.hosts.timezone.now", lambda: later)
    assert host_confirm_state(actor=admin, host=host).state_epoch > again
