"""The OpenAPI document agrees with the outside contract: same paths, same field names."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

FIELDS = {
    "hosts": "id name description enabled reconcile_interval heartbeat_interval build_timeout "
    "pull_timeout router nvidia metrics agent_image maintenance_schedule status last_heartbeat "
    "agent_version engine capabilities cpu_count memory_bytes gpus interfaces message",
    "networks": "id name host driver internal parent_interface subnet gateway ip_range status "
    "message",
    "volumes": "id name host kind source status message",
    "registries": "id server username",
    "images": "id name host kind dockerfile files build_args target pull_base reference registry "
    "update_policy push enabled status message progress digest engine_id size_bytes "
    "source_workspace current_build available_digest",
    "workspaces": "name description host image desired_state command env secret_env cpus "
    "memory_bytes shm_bytes gpus nested_virtualization ports mounts networks urls health_check "
    "startup_timeout drain_timeout idle_stop_minutes schedule labels id status status_label "
    "message fresh observed_at allowed_actions revision observed_revision container_id "
    "container_name started_at restart_count health owner stack created_at updated_at",
    "users": "id username email is_admin is_active groups",
    "tokens": "id name scope expires_at last_used_at",
}
WRITE_ONLY = {"registries": {"password"}, "users": {"password"}}
PATHS = {
    "/api/v1/auth/token/": {"post"},
    "/api/v1/hosts/{id}/enrolment/": {"post"},
    "/api/v1/hosts/{id}/cycles/": {"get"},
    "/api/v1/hosts/{id}/leftovers/": {"get"},
    "/api/v1/images/{id}/build/": {"post"},
    "/api/v1/images/{id}/cancel/": {"post"},
    "/api/v1/images/{id}/check/": {"post"},
    "/api/v1/hosts/{id}/unused-images/": {"get"},
    "/api/v1/images/{id}/builds/": {"get"},
    "/api/v1/builds/{id}/": {"get"},
    "/api/v1/builds/{id}/log/": {"get"},
    "/api/v1/workspaces/{id}/": {"get", "patch", "delete"},
    "/api/v1/workspaces/{id}/plan/": {"post"},
    "/api/v1/workspaces/{id}/events/": {"get"},
    "/api/v1/workspaces/{id}/logs/": {"get"},
    "/api/v1/workspaces/{id}/revisions/": {"get"},
    **{
        f"/api/v1/workspaces/{{id}}/{action}/": {"post"}
        for action in ("start", "stop", "redeploy", "snapshot", "clone", "rollback")
    },
}


@cache
def _schema() -> dict[str, Any]:
    generator: Any = SchemaGenerator()  # type: ignore[no-untyped-call]
    schema: dict[str, Any] = generator.get_schema(request=None, public=True)
    return schema


def _component(reference: str) -> dict[str, Any]:
    component: dict[str, Any] = _schema()["components"]["schemas"][reference.rpartition("/")[2]]
    return component


def _listed(noun: str) -> dict[str, Any]:
    """Properties of one object in the list answer of a resource."""
    answer = _schema()["paths"][f"/api/v1/{noun}/"]["get"]["responses"]["200"]
    page = _component(answer["content"]["application/json"]["schema"]["$ref"])
    assert set(page["properties"]) == {"count", "next", "previous", "results"}
    properties: dict[str, Any] = _component(page["properties"]["results"]["items"]["$ref"])[
        "properties"
    ]
    return properties


@pytest.mark.parametrize("noun", FIELDS)
def test_every_field_of_the_contract_is_in_the_document(noun: str) -> None:
    assert set(FIELDS[noun].split()) - set(_listed(noun)) == set()


@pytest.mark.parametrize("noun", WRITE_ONLY)
def test_write_only_fields_are_never_part_of_an_answer(noun: str) -> None:
    assert WRITE_ONLY[noun] & set(_listed(noun)) == set()


@pytest.mark.parametrize("path", PATHS)
def test_every_path_of_the_contract_offers_its_methods(path: str) -> None:
    offered = _schema()["paths"].get(path, {})
    assert PATHS[path] <= set(offered)


@pytest.mark.parametrize("noun", FIELDS)
def test_nothing_offers_put(noun: str) -> None:
    assert "put" not in _schema()["paths"].get(f"/api/v1/{noun}/{{id}}/", {})
