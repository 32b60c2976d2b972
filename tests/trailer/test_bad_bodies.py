"""Bodies that no endpoint may fall over: each gets 4xx with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import api_client

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db

COLLECTIONS = ("hosts", "networks", "volumes", "registries", "images", "tokens", "users")
BODIES = {
    "no JSON": b"{",
    "empty text": b'""',
    "a number": b"5",
    "null": b"null",
    "a list": b"[]",
    "a list of objects": b'[{"name": "x"}]',
    "NUL in a value": b'{"name": "a\\u0000b", "server": "a\\u0000b", "username": "a\\u0000b"}',
    "NUL in a name": b'{"na\\u0000me": "a"}',
    "lone surrogate": b'{"name": "\\ud800", "server": "\\ud800", "username": "\\ud800"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "NaN": b'{"name": NaN}',
    "huge number": b'{"name": 1e999, "server": 1e999, "username": 1e999}',
    "many digits": b'{"name": ' + b"9" * 5000 + b"}",
    "deep nesting": b'{"name": ' + b"[" * 100 + b"]" * 100 + b"}",
    "very deep nesting": b"[" * 100_000 + b"]" * 100_000,
    "nested objects": b'{"name": {"a": 1}, "host": {"a": 1}, "server": {}, "username": {}}',
    "unknown fields": b'{"nothing": 1}',
    "duplicate keys": b'{"name": "", "name": "", "server": "", "username": ""}',
    "two documents": b"{}{}",
}


def _post(client: Any, url: str, body: bytes, kind: str = "application/json") -> Any:
    return client.generic("POST", url, body, content_type=kind)


@pytest.mark.parametrize("collection", COLLECTIONS)
@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_gets_a_sentence(admin: User, collection: str, name: str) -> None:
    client = api_client(admin, scope="admin")
    url = f"/api/v1/{collection}/"
    answer = _post(client, url, BODIES[name])
    assert answer.status_code == 400, answer.content
    body = answer.json()
    assert body["code"] == "invalid"
    assert len(body["message"]) > 5
    assert body["request_id"] == answer.headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b'{"name": "b", "description": "a\\u0000b"}', "description"),
        (b'{"name": "b", "router": {"domains": ["a", "\\ud800"]}}', "router.domains.1"),
        (b'{"name": "b", "router": {"mo\\u0000de": "none"}}', "router"),
        (b'{"name": "b", "metrics": {"retention_days": 0}}', "metrics.retention_days"),
    ],
)
def test_the_sentence_begins_with_the_field_as_the_api_names_it(
    admin: User, text: bytes, field: str
) -> None:
    body = _post(api_client(admin, scope="admin"), "/api/v1/hosts/", text).json()
    assert body["message"].startswith(f"{field}: ")
    assert list(body["fields"]) == [field]


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data"])
def test_another_media_type_is_refused(admin: User, kind: str) -> None:
    answer = _post(api_client(admin), "/api/v1/hosts/", b"name=x", kind)
    assert answer.status_code == 415
    assert answer.json()["code"] == "unsupported"


def test_a_body_beyond_the_limit_is_too_large(admin: User) -> None:
    body = b'{"description": "' + b"x" * (9 * 1024 * 1024) + b'"}'
    answer = _post(api_client(admin), "/api/v1/hosts/", body)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "query", ["page=0", "page=x", "page=99999999999999999999", "page_size=x", "ordering=nothing"]
)
def test_odd_paging_never_breaks_a_list(admin: User, query: str) -> None:
    answer = api_client(admin).get(f"/api/v1/hosts/?{query}")
    assert answer.status_code in (200, 404)
    assert answer.json()


def test_a_page_holds_at_most_five_hundred(admin: User) -> None:
    body = api_client(admin).get("/api/v1/hosts/?page_size=100000").json()
    assert set(body) == {"count", "next", "previous", "results"}
