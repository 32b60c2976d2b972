"""What a Dockerfile adds from elsewhere is judged when an image is made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from images.models import Image
from tests.factories import api_client, make_image

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

URL = "/api/v1/images/"
HERE = "FROM busybox\nADD http://127.0.0.1:9/x /x\n"
FINE = "FROM busybox\nADD https://files.example/x /x\n"

pytestmark = pytest.mark.django_db


def body(host: Host, dockerfile: str) -> dict[str, object]:
    return {"name": "app", "host": str(host.pk), "kind": "build", "dockerfile": dockerfile}


@pytest.mark.parametrize(
    ("dockerfile", "part"),
    [
        (HERE, "Line 2 of the Dockerfile: 127.0.0.1 is an address of this machine"),
        ("FROM busybox\nADD http://2130706433/x /x", "four decimal numbers"),
        ("FROM busybox\nADD http://[::ffff:169.254.169.254]/ /x", "TRAILER_BUILD_ALLOW"),
        ("FROM busybox\nADD git@h.example:x.git /x", "clone it in a RUN step"),
        ("FROM busybox\nADD http://h.example/$UNKNOWN /x", "not clear what"),
        ("FROM busybox\nONBUILD ADD https://h.example/x /x", "Only an ADD of the Dockerfile"),
    ],
)
def test_a_source_that_nobody_fetches_is_refused_with_its_line(
    host: Host, owner: User, dockerfile: str, part: str
) -> None:
    answer = api_client(owner).post(URL, body(host, dockerfile))
    assert answer.status_code == 400
    assert part in str(answer.json()["fields"]["dockerfile"])
    assert not Image.objects.exists()


def test_arguments_and_edits_are_judged_too(host: Host, owner: User) -> None:
    client = api_client(owner)
    text = "FROM busybox\nARG U=https://files.example/x\nADD $U /x\n"
    made = client.post(URL, body(host, text))
    assert made.status_code == 201
    url = f"{URL}{made.json()['id']}/"
    for change in (
        {"build_args": {"U": "http://127.0.0.1/"}},
        {"build_args": {"U": "http://metadata@169.254.169.254/"}},
        {"dockerfile": HERE},
    ):
        answer = client.patch(url, change)
        assert answer.status_code == 400
        assert "Line " in str(answer.json())
    assert client.patch(url, {"dockerfile": FINE}).status_code == 200


def test_an_image_from_before_the_rule_can_be_renamed(owner: User) -> None:
    image = make_image(owner=owner, kind="build", reference="", dockerfile=HERE)
    client = api_client(owner)
    assert client.patch(f"{URL}{image.pk}/", {"name": "other"}).status_code == 200
    assert client.patch(f"{URL}{image.pk}/", {"target": "x"}).status_code == 400


def test_an_operators_list_opens_places(host: Host, owner: User, settings: Any) -> None:
    settings.TRAILER_BUILD_ALLOW = ["127.0.0.0/8"]
    assert api_client(owner).post(URL, body(host, HERE)).status_code == 201
