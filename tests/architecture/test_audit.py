"""Every route that changes something writes an audit row; a route without a line here fails."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.test import Client, TestCase, override_settings
from django.utils import timezone

from images.models import Image
from tests.architecture.scene import undone
from tests.factories import (
    api_client,
    make_admin,
    make_build,
    make_group,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_stack,
    make_user,
    make_volume,
    make_workspace,
)
from tests.openapi import openapi
from trailer.audit.models import AuditEntry
from workspaces.models import Workspace

PASSWORD = "correct horse battery"
# Routes that take a body but change nothing.
CHANGES_NOTHING = {
    "POST workspaces/{id}/plan/",
    "POST workspaces/{id}/redeploy/plan/",
    "POST workspaces/{id}/rollback/plan/",
    "POST images/{id}/build/plan/",
    "POST stacks/{id}/deploy/plan/",
    "POST stacks/{id}/sync/plan/",
    "POST stacks/{id}/settings/plan/",
    "POST stacks/{id}/rollback/plan/",
    "PATCH networks/{id}/",
    "POST stacks/check/",
    "POST stacks/{id}/encrypt/",
}
# These take a code of the moment: tests/trailer/test_second_factor.py looks for their rows.
LOOKED_FOR_ELSEWHERE = {
    "POST me/second-factor/confirm/",
    "POST me/second-factor/recovery-codes/",
    "POST agent-rollouts/stop/",
}
# Method and path -> a body that is accepted; {name} stands for the id of an object of the scene.
BODIES: dict[str, Any] = {
    "POST auth/token/": {"username": "root", "password": PASSWORD},
    "POST tokens/": {"name": "ci"},
    "PATCH tokens/{token}/": {"name": "renamed"},
    "DELETE tokens/{token}/": None,
    "DELETE sessions/{session}/": None,
    "POST sessions/end-others/": {},
    "PATCH me/": {"email": "root@example.com", "current_password": PASSWORD},
    "POST me/password/": {"current_password": PASSWORD, "password": f"{PASSWORD} staple"},
    "POST users/": {"username": "eva"},
    "PATCH users/{user}/": {"email": "stan@example.com"},
    "DELETE users/{user}/": None,
    "POST me/second-factor/": {"current_password": PASSWORD},
    "POST me/second-factor/remove/": {"current_password": PASSWORD},
    "POST users/{user}/second-factor/remove/": {},
    "PUT users/{user}/quota/": {"workspaces": 3},
    "PUT groups/{group}/quota/": {"cpus": 1.5},
    "POST groups/": {"name": "team"},
    "PATCH groups/{group}/": {"users": ["stan"]},
    "DELETE groups/{group}/": None,
    "POST hosts/": {"name": "north"},
    "PATCH hosts/{host}/": {"description": "In the cellar."},
    "DELETE hosts/{spare}/": None,
    "POST hosts/{host}/enrolment/": {},
    "POST hosts/{host}/confirm-state/": {},
    "POST hosts/{host}/revoke/": {},
    "PUT hosts/{host}/access/": [{"user": "stan", "capabilities": ["bind"]}],
    "POST agent-rollouts/": {"image": "trailer/agent:2"},
    "POST networks/": {"name": "office", "host": "{host}"},
    "DELETE networks/{network}/": None,
    "POST networks/{network}/transfer/": {"owner": "stan"},
    "PUT networks/{network}/grants/": [{"user": "stan", "role": "viewer"}],
    "POST networks/{used_network}/evict/": {"workspace": "{user_of_parts}"},
    "POST volumes/{used_volume}/evict/": {"workspace": "{user_of_parts}"},
    "POST images/{image}/evict/": {"workspace": "{workspace}"},
    "POST volumes/": {"name": "papers", "host": "{host}"},
    "DELETE volumes/{volume}/?confirm=data": None,
    "POST volumes/{volume}/acknowledge/": {},
    "POST volumes/{volume}/transfer/": {"owner": "stan"},
    "PUT volumes/{volume}/grants/": [{"user": "stan", "role": "viewer"}],
    "POST registries/": {"server": "other.example.com"},
    "PATCH registries/{registry}/": {"password": "s3cr3t"},
    "DELETE registries/{registry}/": None,
    "POST registries/{registry}/test/": {},
    "POST images/": {"name": "new", "host": "{host}", "kind": "pull", "reference": "busybox"},
    "PATCH images/{image}/": {"name": "renamed"},
    "DELETE images/{unused}/": None,
    "POST images/{image}/build/": {},
    "POST images/{building}/cancel/": {},
    "POST images/{image}/check/": {},
    "POST images/{image}/transfer/": {"owner": "stan"},
    "PUT images/{image}/grants/": [{"user": "stan", "role": "viewer"}],
    "POST stacks/": {"name": "shop", "host": "{host}", "repository": "https://git.test/a.git"},
    "PATCH stacks/{stack}/": {"poll_interval": 60, "webhook_secret": PASSWORD * 2},
    "DELETE stacks/{stack}/": None,
    "POST stacks/{stack}/deploy/": {},
    "POST stacks/{stack}/sync/": {},
    "POST stacks/{stack}/rollback/": {"revision": 1},
    "POST stacks/{stack}/transfer/": {"owner": "stan"},
    "PUT stacks/{stack}/grants/": [{"user": "stan", "role": "viewer"}],
    "POST workspaces/": {"name": "new", "host": "{host}", "image": "{image}"},
    "PATCH workspaces/{workspace}/": {"cpus": 1},
    "DELETE workspaces/{workspace}/": None,
    "POST workspaces/{stopped}/start/": {},
    "POST workspaces/{workspace}/stop/": {},
    "POST workspaces/{workspace}/redeploy/": {},
    "POST workspaces/{idle}/extend/": {"minutes": 30},
    "POST workspaces/{workspace}/snapshot/": {"name": "saved"},
    "POST workspaces/{workspace}/clone/": {"name": "copy"},
    "POST workspaces/{changed}/rollback/": {"revision": 2},
    "POST workspaces/{workspace}/transfer/": {"owner": "stan"},
    "PUT workspaces/{workspace}/grants/": [{"user": "stan", "role": "viewer"}],
}
_METHODS = ("post", "put", "patch", "delete")


@cache
def _routes() -> set[str]:
    paths = openapi()["paths"]
    return {
        f"{method.upper()} {path.removeprefix('/api/v1/')}"
        for path, operations in paths.items()
        if path.startswith("/api/v1/")
        for method in operations
        if method in _METHODS
    }


def _route(line: str) -> str:
    """The line of the table as the schema spells it."""
    words = line.partition("?")[0].split("/")
    return "/".join("{id}" if word.startswith("{") else word for word in words)


def _scene() -> tuple[Any, dict[str, str]]:
    admin = make_admin("root", password=PASSWORD)
    client = api_client(admin)
    browser = Client()
    browser.force_login(admin)
    host = make_host("alpha", agent_image_running="trailer/agent:1")
    image = make_image(host, admin, update_policy="always")
    building = make_image(host, admin, status="building")
    make_build(building, status="building")
    Image.objects.filter(pk=building.pk).update(status="building")
    running = {"observed_status": "running", "observed_revision": 1}
    changed = make_workspace(host, admin, "changed", image=image)
    assert client.patch(f"/api/v1/workspaces/{changed.pk}/", {"cpus": 1}).status_code == 200
    assert client.patch(f"/api/v1/workspaces/{changed.pk}/", {"cpus": 2}).status_code == 200
    network, volume = make_network(host, admin), make_volume(host, admin)
    user_of_parts = make_workspace(host, admin, "user", image=image)
    user_of_parts.networks.add(network)
    user_of_parts.mounts.create(volume=volume, target="/data")
    rows: dict[str, Any] = {
        "used_network": network,
        "used_volume": volume,
        "user_of_parts": user_of_parts,
        "user": make_user("stan"),
        "group": make_group(name="lab"),
        "host": host,
        "spare": make_host("beta", enabled=False),
        "network": make_network(host, admin),
        "volume": make_volume(host, admin, "data", data_gone_at=timezone.now()),
        "registry": make_registry(admin),
        "image": image,
        "unused": make_image(host, admin),
        "building": building,
        "workspace": make_workspace(host, admin, "box", image=image, **running),
        "stopped": make_workspace(host, admin, "off", image=image, desired_state="stopped"),
        "changed": changed,
        "stack": make_stack(host, admin),
        "idle": make_workspace(host, admin, "idle", image=image, idle_stop_minutes=30),
        "token": admin.api_tokens.create(name="old", digest="0" * 64),
    }
    Workspace.objects.filter(name="changed").update(observed_revision=2)
    ids = {name: str(row.pk) for name, row in rows.items()}
    return client, ids | {"session": str(admin.sessions.get().public_id)}


def _filled(body: Any, ids: dict[str, str]) -> Any:
    if isinstance(body, dict):
        return {key: _filled(value, ids) for key, value in body.items()}
    if isinstance(body, str) and body.startswith("{"):
        return ids[body.strip("{}")]
    return body


def test_every_route_that_changes_something_is_in_the_table() -> None:
    assert {_route(line) for line in BODIES} | CHANGES_NOTHING | LOOKED_FOR_ELSEWHERE == _routes()


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class TestEveryChange(TestCase):
    """One scene for all; each change is put back before the next one."""

    def test_a_change_is_written_down_with_who_made_it(self) -> None:
        client, ids = _scene()
        for line in BODIES:
            with self.subTest(line), undone():
                _check_line(line, client, ids)


def _check_line(line: str, client: Any, ids: dict[str, str]) -> None:
    method, _, path = line.partition(" ")
    before = AuditEntry.objects.count()
    call = getattr(client, method.lower())
    answer = call(f"/api/v1/{path.format(**ids)}", _filled(BODIES[line], ids), format="json")
    assert answer.status_code < 300, answer.content
    new = AuditEntry.objects.order_by("-at")[: AuditEntry.objects.count() - before]
    assert [(row.actor_name, row.via, row.outcome) for row in new] == [("root", "token", "done")]
    assert PASSWORD not in str(new[0].changes)
    assert "s3cr3t" not in str(new[0].changes)
