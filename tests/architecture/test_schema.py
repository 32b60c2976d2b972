"""The OpenAPI document agrees with the outside contract: same paths, same field names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openapi import openapi

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
    "stacks": "id name host repository branch path poll_interval credential enabled variables "
    "status message deployed_commit available_commit services needs last_sync",
    "users": "id username email is_admin is_active groups",
    "tokens": "id name scope expires_at last_used_at",
    # Who, what, from where.
    "audit": "at actor action kind object object_name address changes",
}
WRITABLE = {
    "hosts": "name description enabled reconcile_interval heartbeat_interval build_timeout "
    "pull_timeout router nvidia metrics agent_image maintenance_schedule",
    "networks": "name host driver internal parent_interface subnet gateway ip_range",
    "volumes": "name host kind source",
    "registries": "server username password",
    "images": "name host kind dockerfile files build_args target pull_base reference registry "
    "update_policy push enabled",
    "workspaces": "name description host image desired_state command env secret_env cpus "
    "memory_bytes shm_bytes gpus nested_virtualization ports mounts networks urls health_check "
    "startup_timeout drain_timeout idle_stop_minutes schedule labels",
    "stacks": "name host repository branch path poll_interval credential enabled webhook_secret "
    "variables secret_variables",
    "users": "username email password is_admin is_active groups",
    "tokens": "name scope expires_at",
}
# Chosen once: another one is made instead. Of a volume that is everything.
KEPT = {"tokens": {"scope", "expires_at"}, "images": {"host", "kind"}}
WRITE_ONLY = {
    "registries": {"password"},
    "users": {"password"},
    "stacks": {"webhook_secret"},
    "tokens": {"key", "token", "digest"},
}
# What is answered elsewhere than in a list of resources: method and path -> where the object
# lies in the answer, and its names.
ANSWERS = {
    "POST /auth/token/": "token",
    "POST /tokens/": "id name scope expires_at last_used_at key",
    "POST /hosts/{id}/enrolment/": "token expires_at command",
    "GET /hosts/{id}/cycles/ results": "number trigger started_at finished_at outcome cleanup "
    "engine_calls steps",
    "GET /hosts/{id}/cycles/ results steps": "step resource name cause outcome started_at "
    "duration_ms message",
    "GET /hosts/{id}/metrics/": "count next previous results",
    "GET /workspaces/{id}/metrics/": "count next previous results",
    "GET /workspaces/{id}/grants/": "user role",
    "PUT /workspaces/{id}/grants/": "user role",
    "POST /workspaces/{id}/plan/": "action changes downtime",
    "POST /workspaces/{id}/plan/ changes": "field from to effect",
    "GET /workspaces/{id}/events/ results": "at kind cause changes actor cycle",
    "GET /workspaces/{id}/revisions/ results": "revision",
    "GET /stacks/{id}/syncs/ results": "id log",
    "GET /hosts/ results router": "mode network entrypoint certresolver managed image",
    "GET /hosts/ results nvidia": "deploy_driver deploy_toolkit driver_image toolkit_image",
    "GET /hosts/ results metrics": "host gpu workspace retention_days",
    "GET /hosts/ results engine": "name version api_version runtimes storage_driver live_restore",
    "GET /images/ results files": "path content",
    "GET /workspaces/ results ports": "container_port protocol host_port host_ip",
    "GET /workspaces/ results mounts": "volume target read_only",
    "GET /workspaces/ results urls": "subdomain domain port tls auth",
    "GET /workspaces/ results health_check": "test interval timeout retries start_period",
    "GET /workspaces/ results schedule": "start stop",
    "GET /workspaces/ results gpus": "count device_ids",
}
CHOICES = {
    "GET /hosts/ results status": "pending online offline disabled",
    "GET /hosts/ results router mode": "none traefik-files traefik-labels",
    "GET /hosts/{id}/cycles/ results cleanup": "done deferred held skipped",
    "GET /networks/ results driver": "bridge macvlan",
    "GET /networks/ results status": "pending created error",
    "GET /volumes/ results kind": "volume bind",
    "GET /images/ results kind": "build pull snapshot",
    "GET /images/ results update_policy": "always if_missing",
    "GET /images/ results status": "pending building finished failed cancelled",
    "GET /workspaces/ results desired_state": "running stopped",
    "GET /workspaces/{id}/grants/ role": "viewer editor manager",
    "POST /workspaces/{id}/plan/ action": "none create in_place replace start stop",
    "POST /workspaces/{id}/plan/ changes effect": "none in_place replace",
    "POST /workspaces/{id}/plan/ downtime": "none brief",
    "GET /stacks/ results status": "pending syncing synced failed out_of_sync",
}
QUERIES = {
    **{f"/{noun}/": "page page_size search ordering" for noun in FIELDS},
    "/workspaces/": "page page_size search ordering host status name stack",
    "/images/": "page page_size search ordering host status name",
    "/networks/": "page page_size search ordering host status name",
    "/volumes/": "page page_size search ordering host status name",
    "/stacks/": "page page_size search ordering host status name",
    "/builds/{id}/log/": "offset",
    "/hosts/{id}/metrics/": "since",
    "/workspaces/{id}/metrics/": "since",
    "/workspaces/{id}/logs/": "tail previous",
}
ACTIONS = {
    "images": ("build", "cancel"),
    "workspaces": ("start", "stop", "redeploy", "snapshot", "clone", "rollback"),
    "stacks": ("deploy", "sync", "rollback"),
}
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
    "/api/v1/workspaces/{id}/metrics/": {"get"},
    "/api/v1/workspaces/{id}/grants/": {"get", "put"},
    "/api/v1/hosts/{id}/metrics/": {"get"},
    "/api/v1/stacks/{id}/syncs/": {"get"},
    "/api/v1/tokens/{id}/": {"get", "patch", "delete"},
    "/api/v1/users/{id}/": {"get", "patch", "delete"},
    "/api/v1/audit/": {"get"},
    "/webhooks/stacks/{id}/": {"post"},
    **{f"/api/v1/stacks/{{id}}/{action}/": {"post"} for action in ("deploy", "sync", "rollback")},
    **{
        f"/api/v1/workspaces/{{id}}/{action}/": {"post"}
        for action in ("start", "stop", "redeploy", "snapshot", "clone", "rollback")
    },
}


def _component(reference: str) -> dict[str, Any]:
    component: dict[str, Any] = openapi()["components"]["schemas"][reference.rpartition("/")[2]]
    return component


def _listed(noun: str) -> dict[str, Any]:
    """Properties of one object in the list answer of a resource."""
    answer = openapi()["paths"][f"/api/v1/{noun}/"]["get"]["responses"]["200"]
    page = _component(answer["content"]["application/json"]["schema"]["$ref"])
    assert set(page["properties"]) == {"count", "next", "previous", "results"}
    properties: dict[str, Any] = _component(page["properties"]["results"]["items"]["$ref"])[
        "properties"
    ]
    return properties


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The object that a schema is about, past references, lists and what may be null."""
    while True:
        if "$ref" in schema:
            schema = _component(schema["$ref"])
        elif schema.get("type") == "array":
            schema = schema["items"]
        elif "allOf" in schema or "oneOf" in schema:
            parts = schema.get("allOf") or schema["oneOf"]
            schema = next(part for part in parts if "NullEnum" not in part.get("$ref", ""))
        else:
            return schema


def _answer(line: str) -> dict[str, Any]:
    """`METHOD /path/ name name` is what lies under those names in the first good answer."""
    method, path, *names = line.split()
    responses = openapi()["paths"][f"/api/v1{path}"][method.lower()]["responses"]
    good = next(responses[status] for status in ("200", "201", "202") if status in responses)
    found = _resolved(good["content"]["application/json"]["schema"])
    for name in names:
        found = _resolved(found["properties"][name])
    return found


def _asked(path: str, method: str) -> dict[str, Any]:
    body = openapi()["paths"][path][method]["requestBody"]["content"]["application/json"]
    asked: dict[str, Any] = _resolved(body["schema"])["properties"]
    return asked


@pytest.mark.parametrize("noun", FIELDS)
def test_every_field_of_the_contract_is_in_the_document(noun: str) -> None:
    assert set(FIELDS[noun].split()) - set(_listed(noun)) == set()


@pytest.mark.parametrize("noun", WRITE_ONLY)
def test_write_only_fields_are_never_part_of_an_answer(noun: str) -> None:
    assert WRITE_ONLY[noun] & set(_listed(noun)) == set()


@pytest.mark.parametrize("path", PATHS)
def test_every_path_of_the_contract_offers_its_methods(path: str) -> None:
    offered = openapi()["paths"].get(path, {})
    assert PATHS[path] <= set(offered)


@pytest.mark.parametrize("noun", FIELDS)
def test_nothing_offers_put(noun: str) -> None:
    assert "put" not in openapi()["paths"].get(f"/api/v1/{noun}/{{id}}/", {})


@pytest.mark.parametrize("noun", WRITABLE)
def test_every_writable_field_is_taken_by_a_create(noun: str) -> None:
    assert set(WRITABLE[noun].split()) - set(_asked(f"/api/v1/{noun}/", "post")) == set()


@pytest.mark.parametrize("noun", sorted(set(WRITABLE) - {"volumes"}))
def test_every_writable_field_is_taken_by_a_change(noun: str) -> None:
    names = set(WRITABLE[noun].split()) - KEPT.get(noun, set())
    assert names - set(_asked(f"/api/v1/{noun}/{{id}}/", "patch")) == set()


@pytest.mark.parametrize("line", ANSWERS)
def test_every_answer_of_the_contract_has_its_names(line: str) -> None:
    assert set(ANSWERS[line].split()) - set(_answer(line)["properties"]) == set()


@pytest.mark.parametrize("line", CHOICES)
def test_every_choice_of_the_contract_is_told(line: str) -> None:
    assert set(_answer(line)["enum"]) == set(CHOICES[line].split())


@pytest.mark.parametrize("path", QUERIES)
def test_every_list_takes_the_contracts_parameters(path: str) -> None:
    parameters = openapi()["paths"][f"/api/v1{path}"]["get"]["parameters"]
    offered = {item["name"] for item in parameters if item["in"] == "query"}
    assert set(QUERIES[path].split()) - offered == set()


@pytest.mark.parametrize(
    ("noun", "action"), [(n, a) for n, names in ACTIONS.items() for a in names]
)
def test_an_action_is_answered_with_202_and_the_object(noun: str, action: str) -> None:
    responses = openapi()["paths"][f"/api/v1/{noun}/{{id}}/{action}/"]["post"]["responses"]
    answered = _resolved(responses["202"]["content"]["application/json"]["schema"])
    assert set(FIELDS[noun].split()) - set(answered["properties"]) == set()


@pytest.mark.parametrize(
    "path",
    [
        *(f"/{noun}/{{id}}/ patch" for noun in ("hosts", "images", "workspaces", "stacks")),
        *(f"/{noun}/{{id}}/{action}/ post" for noun, names in ACTIONS.items() for action in names),
    ],
)
def test_changes_and_actions_take_the_revision_that_was_seen(path: str) -> None:
    path, _, method = path.partition(" ")
    parameters = openapi()["paths"][f"/api/v1{path}"][method]["parameters"]
    assert ("If-Match", "header") in {(item["name"], item["in"]) for item in parameters}
