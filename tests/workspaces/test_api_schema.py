"""The OpenAPI document says of workspaces what the endpoints do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openapi import openapi
from workspaces.validation.fields import REQUIRED, WRITABLE


@pytest.fixture
def schema() -> dict[str, Any]:
    return openapi()


def component(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["components"]["schemas"][name]
    return found


def test_the_input_names_exactly_the_writable_fields(schema: dict[str, Any]) -> None:
    create = component(schema, "WorkspaceInputRequest")
    assert set(create["properties"]) == WRITABLE
    assert set(create["required"]) == set(REQUIRED)
    patch = component(schema, "PatchedWorkspaceUpdateInputRequest")
    assert set(patch["properties"]) == {*WRITABLE, "refuse_loss"}
    assert "required" not in patch


def test_the_answer_names_the_writable_fields_too(schema: dict[str, Any]) -> None:
    assert set(component(schema, "Workspace")["properties"]) > WRITABLE


def test_every_route_is_described_with_its_codes(schema: dict[str, Any]) -> None:
    codes = {
        (path.removeprefix("/api/v1/workspaces/"), method): min(operation["responses"])
        for path, operations in schema["paths"].items()
        if path.startswith("/api/v1/workspaces/")
        for method, operation in operations.items()
    }
    assert codes == {
        ("", "get"): "200",
        ("", "post"): "201",
        ("{id}/", "get"): "200",
        ("{id}/", "patch"): "200",
        ("{id}/", "delete"): "204",
        ("{id}/start/", "post"): "202",
        ("{id}/stop/", "post"): "202",
        ("{id}/redeploy/", "post"): "202",
        ("{id}/snapshot/", "post"): "202",
        ("{id}/snapshots/", "get"): "200",
        ("{id}/clone/", "post"): "202",
        ("{id}/extend/", "post"): "202",
        ("{id}/rollback/", "post"): "202",
        ("{id}/rollback/plan/", "post"): "200",
        ("{id}/redeploy/plan/", "post"): "200",
        ("{id}/plan/", "post"): "200",
        ("{id}/metrics/", "get"): "200",
        ("{id}/grants/", "get"): "200",
        ("{id}/grants/", "put"): "200",
        ("{id}/transfer/", "post"): "202",
        ("{id}/events/", "get"): "200",
        ("{id}/logs/", "get"): "200",
        ("{id}/revisions/", "get"): "200",
    }


def test_a_plan_is_described_as_the_contract_has_it(schema: dict[str, Any]) -> None:
    plan = {"action", "changes", "downtime", "downtime_reason", "notes"}
    loss = {"loses_files", "writable_layer", "writable_layer_reason", "can_snapshot"}
    assert set(component(schema, "Plan")["properties"]) == plan | loss
    layer = component(schema, "WritableLayer")["properties"]
    assert set(layer) > {"size_bytes", "paths"}
    change = component(schema, "FieldChange")
    assert set(change["properties"]) == {"field", "from", "to", "effect"}
