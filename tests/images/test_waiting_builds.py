"""A build that no agent takes up says what it waits for; one that is asked for is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from hosts.models import Host
from images.models import Image
from tests.factories import api_client, make_image

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"


@pytest.mark.parametrize("action", ["build", "check"])
def test_nothing_is_asked_of_a_disabled_host(owner: User, action: str) -> None:
    image = make_image(owner=owner, update_policy="always")
    Host.objects.update(enabled=False)
    client = api_client(owner)
    answer = client.post(f"{URL}{image.pk}/{action}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "host_disabled")
    assert answer.json()["message"] == (
        f"Host {image.host.name} is disabled, so nothing is done there. Enable it first."
    )
    assert image.builds.count() == 1
    assert action not in client.get(f"{URL}{image.pk}/").json()["allowed_actions"]
    Host.objects.update(enabled=True)
    assert action in client.get(f"{URL}{image.pk}/").json()["allowed_actions"]


def test_a_build_that_no_agent_takes_up_says_why(owner: User) -> None:
    image = make_image(owner=owner, status="pending")
    build, name = image.builds.get(), image.host.name
    browser = Client()
    browser.force_login(owner)

    def told() -> str:
        client = api_client(owner)
        messages = {
            client.get(f"{URL}{image.pk}/").json()["message"],
            client.get(f"/api/v1/builds/{build.pk}/").json()["message"],
            client.get(f"{URL}{image.pk}/builds/").json()["results"][0]["message"],
        }
        assert len(messages) == 1
        message = messages.pop()
        assert message in browser.get(f"/images/{image.pk}/").content.decode()
        return str(message)

    assert told() == ""
    Host.objects.update(enabled=False)
    assert told() == f"Host {name} is disabled; this begins when it is enabled."
    Image.objects.update(enabled=False)
    assert told() == f"Image {image.name} is disabled; this begins when it is enabled."
    Image.objects.update(enabled=True)
    Host.objects.update(enabled=True, last_heartbeat=timezone.now() - timedelta(hours=1))
    assert told() == f"Waiting for host {name}, which is offline."
    Host.objects.update(last_heartbeat=None)
    assert told() == f"Waiting for host {name}, which was never connected."


def test_what_ran_before_its_host_was_disabled_keeps_its_own_message(owner: User) -> None:
    image = make_image(owner=owner, status="failed", message="no such tag")
    Host.objects.update(enabled=False)
    assert api_client(owner).get(f"{URL}{image.pk}/").json()["message"] == "no such tag"
