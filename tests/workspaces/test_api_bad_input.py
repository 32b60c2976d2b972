"""Bad input of every kind gets 4xx with a sentence, never 5xx, and changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workspaces.bad_fields import BAD_FIELDS
from tests.workspaces.scene import URL
from workspaces.models import Workspace
from workspaces.validation.fields import WRITABLE

if TYPE_CHECKING:
    from rest_framework.test import APIClient

    from tests.workspaces.scene import Scene


def send(client: APIClient, path: str, data: Any, method: str = "post") -> Any:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return getattr(client, method)(path, text, content_type="application/json")


def check_refusal(answer: Any) -> None:
    assert 400 <= answer.status_code < 500, answer.content
    body = answer.json()
    assert set(body) == {"code", "message", "fields", "request_id"}
    assert body["message"]


def test_every_bad_field_is_refused_on_create_change_and_plan(scene: Scene) -> None:
    client = scene.client()
    workspace = scene.create()
    path = f"{URL}{workspace.pk}/"
    # One value for each place that refuses: test_validation goes through all of them.
    for field, value in {where: (field, value) for field, value, where in BAD_FIELDS}.values():
        check_refusal(send(client, URL, {**scene.body(name="new"), field: value}))
        check_refusal(send(client, path, {field: value}, "patch"))
        check_refusal(send(client, f"{path}plan/", {field: value}))
    assert Workspace.objects.get().revision == 1


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"{}", b"[{}]", b'{"name": NaN}'),
        *(b'{"name": "a\\u0000"}', b'{"name": "\\ud800"}', b"[" * 5000, b'{"a":' * 5000),
        b'{"cpus": ' + b"9" * 6000 + b"}",
        b'{"memory_bytes": 1e400, "name": "a", "name": "b"}',
    ],
)
def test_a_body_that_is_no_object_is_refused(scene: Scene, body: bytes) -> None:
    client = scene.client()
    workspace = scene.create()
    check_refusal(send(client, URL, body))
    check_refusal(send(client, f"{URL}{workspace.pk}/clone/", body))
    check_refusal(send(client, f"{URL}{workspace.pk}/rollback/", body))
    assert Workspace.objects.get().revision == 1


def test_other_media_types_are_refused(scene: Scene) -> None:
    client = scene.client()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/xml", "x"):
        answer = client.post(URL, b"name=x", content_type=kind)
        assert answer.status_code == 415, kind


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(2**63) - 1, 10**30, 0, 1, -1, 80, 65536])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["", "/data", "tcp", "running", "CMD", "::1", "a" * 70_000])
)
KEYS = st.sampled_from(
    [
        *("container_port", "host_port", "protocol", "host_ip", "volume", "target", "read_only"),
        *("subdomain", "domain", "port", "tls", "auth", "test", "interval", "retries", "count"),
        *("device_ids", "start", "stop", "A", ""),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from([*sorted(WRITABLE), "id", "revision", "nonsense"])


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.dictionaries(NAMES, VALUES, max_size=4), base=st.booleans())
def test_no_json_body_is_ever_an_error_of_ours(
    scene: Scene, data: dict[str, Any], base: bool
) -> None:
    client = scene.client()
    Workspace.objects.all().delete()
    workspace = scene.create(name="target")
    body = {**scene.body(), **data} if base else data
    path = f"{URL}{workspace.pk}/"
    for answer in (
        send(client, URL, body),
        send(client, f"{path}plan/", data),
        send(client, path, data, "patch"),
        send(client, f"{path}clone/", data),
        send(client, f"{path}rollback/", data),
        send(client, f"{path}stop/", data),
    ):
        assert answer.status_code < 500, answer.content
        if answer.status_code >= 400:
            check_refusal(answer)
