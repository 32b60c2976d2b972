"""Any JSON in any field of any resource: an answer below 500, in the one error shape."""

from __future__ import annotations

from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.factories import (
    JsonClient,
    api_client,
    make_admin,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_user,
)
from tests.openapi import openapi

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30)
    | st.sampled_from(["bridge", "macvlan", "pull", "build", "bind", "/srv", "10.0.0.0/8", "a.io"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@cache
def _writable() -> dict[str, list[str]]:
    """Field names by collection, from the product's own schema."""
    schema = openapi()
    fields = {}
    for path, operations in schema["paths"].items():
        post = operations.get("post", {})
        is_collection = path.startswith("/api/v1/") and path.count("/") == 4
        if not is_collection or "requestBody" not in post:
            continue
        reference = post["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        shape = schema["components"]["schemas"][reference.rpartition("/")[2]]
        fields[path] = sorted(shape["properties"])
    return fields


class TestAnyJson(TestCase):
    client_: JsonClient
    rows: dict[str, str]

    def setUp(self) -> None:
        self.client_ = api_client(make_admin(), scope="admin")
        host = make_host()
        image = make_image(host)
        self.rows = {
            "/api/v1/hosts/": str(host.pk),
            "/api/v1/images/": str(image.pk),
            "/api/v1/networks/": str(make_network(host).pk),
            "/api/v1/registries/": str(make_registry().pk),
            "/api/v1/users/": str(make_user().pk),
        }
        self.host = str(host.pk)

    def test_the_schema_gave_something_to_try(self) -> None:
        assert set(self.rows) <= set(_writable())

    @settings(
        max_examples=120, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @given(st.data())
    def test_nothing_breaks(self, data: st.DataObject) -> None:
        fields = _writable()
        url = data.draw(st.sampled_from(sorted(fields)))
        names = st.sampled_from(fields[url])
        body = data.draw(st.dictionaries(names, VALUES, max_size=4))
        if data.draw(st.booleans()):
            body |= {"name": "fuzz", "host": self.host, "reference": "busybox"}
        known = {k: v for k, v in body.items() if k in fields[url]}
        answers = [self.client_.post(url, known)]
        if url in self.rows:
            answers.append(self.client_.patch(f"{url}{self.rows[url]}/", known))
        for answer in answers:
            assert answer.status_code < 500, (url, known, answer.content)
            if answer.status_code >= 400:
                assert answer.json()["message"], (url, known)
