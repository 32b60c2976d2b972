"""The OpenAPI document agrees with the code, and every operation tells its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from tests.factories import api_client
from tests.openapi import openapi

if TYPE_CHECKING:
    from trailer.accounts.models import User


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return openapi()


def test_the_document_is_valid_openapi(schema: dict[str, Any]) -> None:
    validate_schema(schema)  # type: ignore[no-untyped-call]


def test_it_is_made_without_warnings(
    capfd: pytest.CaptureFixture[str],
) -> None:
    SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    told = capfd.readouterr()
    assert "Warning" not in told.err + told.out
    assert "Error" not in told.err + told.out


@pytest.mark.parametrize(
    "path",
    [
        "/auth/token/",
        *("/hosts/", "/hosts/{id}/", "/hosts/{id}/enrolment/", "/hosts/{id}/cycles/"),
        *("/networks/", "/networks/{id}/", "/volumes/", "/volumes/{id}/"),
        *("/registries/", "/registries/{id}/", "/images/", "/images/{id}/"),
        *("/images/{id}/build/", "/images/{id}/cancel/", "/images/{id}/builds/"),
        *("/builds/{id}/", "/builds/{id}/log/", "/tokens/", "/tokens/{id}/"),
        *("/users/", "/users/{id}/"),
    ],
)
def test_the_contracts_routes_are_in_it(schema: dict[str, Any], path: str) -> None:
    assert f"/api/v1{path}" in schema["paths"]


def test_every_operation_names_the_one_error_shape(schema: dict[str, Any]) -> None:
    reference = {"$ref": "#/components/schemas/Error"}
    for operations in schema["paths"].values():
        for operation in operations.values():
            content = operation["responses"]["400"]["content"]
            assert content["application/json"]["schema"] == reference


def test_put_is_offered_only_for_what_is_replaced_whole(schema: dict[str, Any]) -> None:
    offered = {path for path, operations in schema["paths"].items() if "put" in operations}
    kinds = ("images", "networks", "volumes", "workspaces", "stacks")
    grants = {f"/api/v1/{kind}/{{id}}/grants/" for kind in kinds}
    quotas = {f"/api/v1/{kind}/{{id}}/quota/" for kind in ("users", "groups")}
    assert offered == grants | quotas | {"/api/v1/hosts/{id}/access/"}


def test_a_password_is_in_no_answer(schema: dict[str, Any]) -> None:
    answers = {k: v for k, v in schema["components"]["schemas"].items() if "Input" not in k}
    for shape in answers.values():
        assert "password" not in shape.get("properties", {})


@pytest.mark.django_db
def test_it_is_served_to_who_is_signed_in(owner: User) -> None:
    assert api_client(owner).get("/api/schema/?format=json").status_code == 200
    assert api_client().get("/api/schema/").status_code == 401
