"""Trying a credential: a host is asked, its answer is shown, and only it decides."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agent.protocol.report import RegistryTested, Report
from images.models import RegistryTest
from images.services.registries import registry_update
from tests.factories import api_client, make_host, make_image, make_registry, make_silent_host
from workspaces.control.compile import host_state
from workspaces.control.ingest import report_ingest
from workspaces.live import live_states

if TYPE_CHECKING:
    from hosts.models import Host
    from images.models import Registry
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


def ask(user: User, registry: Registry, status: int = 202, **body: Any) -> Any:
    answer = api_client(user).post(f"/api/v1/registries/{registry.pk}/test/", body)
    assert answer.status_code == status, answer.content
    return answer.json()


def says(host: Host, test_id: str, *, accepted: bool, message: str = "") -> None:
    item = RegistryTested(seq=1, test_id=test_id, accepted=accepted, message=message)
    assert report_ingest(host, Report(epoch=1, items=(item,))).refused == {}


def read(user: User, registry: Registry) -> Any:
    return api_client(user).get(f"/api/v1/registries/{registry.pk}/").json()


def test_the_credential_travels_to_the_host_once_and_the_answer_back(owner: User) -> None:
    host, registry = make_host("alpha"), make_registry(owner, password="s3cret")
    assert read(owner, registry)["status"] == "untested"
    asked = ask(owner, registry)
    assert (asked["status"], asked["message"]) == ("testing", "Host alpha signs in.")
    assert "s3cret" not in str(asked)
    host.refresh_from_db()
    (wanted,) = host_state(host).registry_tests
    assert (wanted.credential.server, wanted.credential.password) == (registry.server, "s3cret")
    before = host.desired_version
    says(host, wanted.id, accepted=True)
    told = read(owner, registry)
    assert (told["status"], told["message"]) == ("accepted", "Host alpha signed in.")
    assert told["test"]["host"] == str(host.pk)
    assert told["test"]["finished_at"]
    host.refresh_from_db()
    assert host.desired_version > before
    assert host_state(host).registry_tests == ()
    # A second answer, or one to a question that was asked again, says nothing.
    says(host, wanted.id, accepted=False, message="No.")
    assert read(owner, registry)["status"] == "accepted"


def test_a_refusal_is_shown_as_a_sentence_and_to_the_live_page(owner: User) -> None:
    host, registry = make_host("alpha"), make_registry(owner)
    ask(owner, registry)
    says(host, str(RegistryTest.objects.get().pk), accepted=False, message="It said no.")
    name = f"registry:{registry.pk}"
    state = live_states(owner, [name], timezone.now())[name]
    assert (state["status"], state["colour"]) == ("failed", "red")
    assert state["message"] == "It said no. (Tried by host alpha.)"
    assert state["allowed_actions"] == ["test"]


def test_another_host_can_not_answer(owner: User) -> None:
    make_host("alpha")
    registry = make_registry(owner)
    ask(owner, registry)
    says(make_host("beta"), str(RegistryTest.objects.get().pk), accepted=True)
    assert read(owner, registry)["status"] == "testing"


def test_the_host_is_chosen_or_found_among_those_that_answer(owner: User) -> None:
    registry = make_registry(owner)
    assert ask(owner, registry, 409)["code"] == "host_silent"
    silent = make_silent_host("aaa")
    assert ask(owner, registry, 409)["code"] == "host_silent"
    make_host("bbb")
    user_of_it = make_host("ccc")
    make_image(user_of_it, owner, reference=f"{registry.server}/a:1", registry=registry)
    assert ask(owner, registry)["test"]["host"] == str(user_of_it.pk)
    other = make_host("ddd")
    assert ask(owner, registry, host=str(other.pk))["test"]["host"] == str(other.pk)
    # The first question is taken back.
    assert host_state(user_of_it).registry_tests == ()
    assert ask(owner, registry, 409, host=str(silent.pk))["code"] == "host_silent"
    disabled = make_host("eee", enabled=False)
    assert "disabled" in ask(owner, registry, 409, host=str(disabled.pk))["message"]
    assert ask(owner, registry, 400, host="nonsense")["fields"]["host"]


def test_a_changed_credential_is_untested_again(owner: User) -> None:
    host, registry = make_host(), make_registry(owner)
    ask(owner, registry)
    registry_update(actor=owner, registry=registry, password="another")
    assert read(owner, registry)["status"] == "untested"
    assert host_state(host).registry_tests == ()


def test_a_host_that_says_nothing_is_not_waited_for(owner: User) -> None:
    make_host("alpha")
    registry = make_registry(owner)
    ask(owner, registry)
    RegistryTest.objects.update(created_at=timezone.now() - timedelta(seconds=61))
    told = read(owner, registry)
    assert (told["status"], told["status_label"]) == ("failed", "Failed")
    assert told["message"].startswith("Host alpha did not answer.")
