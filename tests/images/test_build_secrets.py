"""Secrets of an image's builds: written and never read, given to the host only while it builds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from agent.protocol.session import EngineInfo, Heartbeat
from agent.protocol.state import DesiredImage, decode_state
from hosts.models import Host
from hosts.services.sessions import host_heartbeat
from images.models import BuildSecret, Image
from images.services.images import image_build, image_update
from images.services.transfer import image_transfer
from tests.admin_pages import admin_client, errors_of, form_values, send_form
from tests.factories import api_client, make_grant, make_image, make_secret
from trailer.access.models import Role
from trailer.audit.models import AuditEntry
from trailer.audit.record import MASK
from trailer.errors import Conflict, NotAllowed
from trailer.sealed import unseal
from workspaces.control.compile import document_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"
CANARY, OTHER = "canary-build-5f0a", "canary-build-77c1"
DOCKERFILE = "FROM busybox\nRUN --mount=type=secret,id=token true\n"


def body(host: Host, **fields: Any) -> dict[str, Any]:
    usual = {"name": "tool", "kind": "build", "dockerfile": DOCKERFILE}
    return {**usual, "host": str(host.pk), "build_secrets": {"token": CANARY}, **fields}


def desired(host: Host) -> DesiredImage:
    document = document_for(host.pk, "")
    assert document.body is not None
    return decode_state(document.body).images[0]


def stored(image: Image) -> dict[str, str]:
    rows = BuildSecret.objects.filter(image=image)
    assert not any(CANARY in row.value_token for row in rows)
    return {row.name: unseal(row, "value_token") for row in rows}


def has_secret(host: Host, owner: User, **fields: Any) -> Image:
    image = make_image(host, owner, "tool", kind="build", dockerfile=DOCKERFILE, **fields)
    make_secret(image, value=CANARY)
    return image


def able(host: Host, *capabilities: str) -> None:
    beat = Heartbeat(
        epoch=1, agent_version="1", engine=EngineInfo(id="e"), capabilities=capabilities
    )
    host_heartbeat(host, beat)
    host.refresh_from_db()


def test_a_secret_is_stored_sealed_answered_by_name_and_sent_while_it_builds(
    host: Host, owner: User
) -> None:
    answer = api_client(owner).post(URL, body(host))
    assert answer.status_code == 201, answer.content
    assert answer.json()["build_secrets"] == {"token": None}
    image = Image.objects.get()
    assert stored(image) == {"token": CANARY}
    assert desired(host).build_secrets == {"token": CANARY}
    image.builds.update(status="finished")
    Host.objects.update(desired_version=99)
    assert desired(host).build_secrets == {}
    told = AuditEntry.objects.get(action="image.create").changes
    assert {"field": "build_secrets", "from": None, "to": {"token": MASK}} in told


def test_stored_values_are_loaded_only_for_a_build_that_needs_them(
    host: Host, owner: User
) -> None:
    image = has_secret(host, owner, status="pending")

    def loads(act: Callable[[], object]) -> list[bool]:
        """Of each look at the secrets: whether it loaded values."""
        with CaptureQueriesContext(connection) as seen:
            act()
        looks = [query["sql"] for query in seen if 'FROM "images_buildsecret"' in query["sql"]]
        return ["value_token" in sql for sql in looks]

    def compiled() -> None:
        Host.objects.update(desired_version=F("desired_version") + 1)
        desired(host)

    assert loads(lambda: api_client(owner).get(URL)) == [False]
    assert loads(lambda: api_client(owner).get(f"{URL}{image.pk}/")) == [False]
    assert loads(compiled) == [False, True]
    image.builds.update(status="finished")
    assert loads(compiled) == [False]


@pytest.mark.parametrize(
    ("given", "after", "builds"),
    [
        ({}, {"token": CANARY}, 1),
        ({"build_secrets": {"token": None}}, {"token": CANARY}, 1),
        ({"build_secrets": {"token": CANARY}}, {"token": CANARY}, 1),
        ({"build_secrets": {"token": OTHER}}, {"token": OTHER}, 2),
        ({"build_secrets": {"token": None, "b": OTHER}}, {"token": CANARY, "b": OTHER}, 2),
        ({"build_secrets": {}, "dockerfile": "FROM busybox"}, {}, 2),
        ({"name": "renamed"}, {"token": CANARY}, 1),
    ],
    ids=["nothing", "kept", "the same", "another", "one more", "dropped", "unrelated"],
)
def test_only_a_changed_secret_builds_anew(
    host: Host, owner: User, given: dict[str, Any], after: dict[str, str], builds: int
) -> None:
    image = has_secret(host, owner)
    answer = api_client(owner).patch(f"{URL}{image.pk}/", given)
    assert answer.status_code == 200, answer.content
    assert answer.json()["build_secrets"] == dict.fromkeys(after)
    assert (stored(image), image.builds.count()) == (after, builds)
    changed = [entry.changes for entry in AuditEntry.objects.filter(action="image.update")]
    assert OTHER not in repr(changed)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"build_secrets": {"a b": "x"}}, "build_secrets"),
        ({"build_secrets": {"": "x"}}, "build_secrets"),
        ({"build_secrets": {"../a": "x"}}, "build_secrets"),
        ({"build_secrets": {"a,b": "x"}}, "build_secrets"),
        ({"build_secrets": {"x" * 129: "x"}}, "build_secrets"),
        ({"build_secrets": {f"s{n}": "x" for n in range(21)}}, "build_secrets"),
        ({"build_secrets": ["x"]}, "build_secrets"),
        ({"build_secrets": {"token": ""}}, "build_secrets.token"),
        ({"build_secrets": {"token": None}}, "build_secrets.token"),
        ({"build_secrets": {"token": 5}}, "build_secrets.token"),
        ({"build_secrets": {"token": "a\0b"}}, "build_secrets.token"),
        ({"build_secrets": {"token": "ä" * 32769}}, "build_secrets.token"),
        ({"build_secrets": {}}, "dockerfile"),
        ({"dockerfile": f"# syntax=docker/dockerfile:1\n{DOCKERFILE}"}, "dockerfile"),
        ({"dockerfile": "FROM busybox\nRUN --mount=type=cache,target=/c true"}, "dockerfile"),
        ({"build_args": {"BUILDKIT_SYNTAX": "a/b"}}, "dockerfile"),
        ({"kind": "pull", "dockerfile": "", "reference": "busybox"}, "build_secrets"),
    ],
)
def test_what_can_not_be_is_refused_by_name(
    host: Host, owner: User, fields: dict[str, Any], field: str
) -> None:
    answer = api_client(owner).post(URL, body(host, **fields))
    assert answer.status_code == 400, answer.content
    assert list(answer.json()["fields"]) == [field]
    assert not Image.objects.exists()


def test_the_largest_secret_is_taken(host: Host, owner: User) -> None:
    answer = api_client(owner).post(URL, body(host, build_secrets={"token": "x" * 65536}))
    assert answer.status_code == 201, answer.content
    assert desired(host).build_secrets == {"token": "x" * 65536}


def test_an_editor_may_not_say_what_is_built_with_the_secrets_of_another(
    host: Host, owner: User, stranger: User, admin: User
) -> None:
    image = has_secret(host, owner)
    make_grant(image, stranger, Role.MANAGER)
    recipe = f"{DOCKERFILE}RUN --mount=type=secret,id=token base64 /run/secrets/token\n"
    attempts: list[Any] = [{}, {"build_secrets": {"token": None}}]
    for given in attempts:
        with pytest.raises(NotAllowed, match="build secrets that are not yours"):
            image_update(actor=stranger, image=image, dockerfile=recipe, **given)
    assert image.builds.count() == 1
    # What is built stays the owner's word: building it again, or another name, gives nothing away.
    image_build(actor=stranger, image=image)
    image_update(actor=stranger, image=image, name="renamed")
    image_update(actor=admin, image=image, dockerfile=f"{recipe}# admin\n")
    own = {"token": OTHER}
    image_update(actor=stranger, image=image, dockerfile=recipe, build_secrets=own)
    assert stored(image) == own


def test_secrets_stay_behind_when_the_image_is_handed_over(
    host: Host, owner: User, stranger: User
) -> None:
    image = has_secret(host, owner)
    image_transfer(actor=owner, image=image, owner=stranger.username)
    image.refresh_from_db()
    assert (stored(image), image.revision, image.owner) == ({}, 2, stranger)
    assert image.builds.count() == 1
    changes = AuditEntry.objects.get(action="image.transfer").changes
    assert {"field": "build_secrets", "from": {"token": MASK}, "to": {}} in changes


def test_an_administrator_gets_them_with_the_image(host: Host, owner: User, admin: User) -> None:
    image = has_secret(host, owner)
    image_transfer(actor=owner, image=image, owner=admin.username)
    assert stored(image) == {"token": CANARY}


def test_an_agent_that_is_too_old_is_named_and_gets_neither_secret_nor_build(
    host: Host, owner: User
) -> None:
    sentence = f"The agent on host {host.name} is too old for build secrets; update it."
    image = has_secret(host, owner, status="pending")
    assert (desired(host).enabled, bool(desired(host).build_secrets)) == (True, True)
    able(host, "build", "pull")
    assert (desired(host).enabled, desired(host).build_secrets) == (False, {})
    answer = api_client(owner).post(URL, body(host, name="second"))
    assert (answer.status_code, answer.json()["message"]) == (409, sentence)
    image.builds.update(status="failed")
    with pytest.raises(Conflict, match="too old"):
        image_build(actor=owner, image=image)
    page = admin_client(owner).get(f"/images/{image.pk}/").content.decode()
    assert sentence in page
    image.builds.update(status="pending")
    able(host, "build", "build_secrets")
    assert (desired(host).enabled, desired(host).build_secrets) == (True, {"token": CANARY})


def test_in_the_admin_a_secret_is_written_kept_and_never_shown(
    host: Host, owner: User, admin: User
) -> None:
    client = admin_client(admin)
    image = has_secret(host, owner)
    url = f"/admin/images/image/{image.pk}/change/"
    assert CANARY not in client.get(url).content.decode()
    assert errors_of(send_form(client, url, {})) == {}
    assert (stored(image), image.builds.count()) == ({"token": CANARY}, 1)
    more = {
        "build_secrets-TOTAL_FORMS": "2",
        "build_secrets-1-name": "second",
        "build_secrets-1-value": f"{OTHER}\r\nline\r\n",
        "build_secrets-1-image": str(image.pk),
    }
    assert errors_of(send_form(client, url, more)) == {}
    assert stored(image) == {"token": CANARY, "second": f"{OTHER}\nline\n"}
    assert image.builds.count() == 2
    name = next(key for key in form_values(client, url) if key.endswith("-0-name"))
    assert errors_of(send_form(client, url, {name: "not a name"}))
    assert set(stored(image)) == {"token", "second"}
