"""Secrets that were put in come out nowhere: answers, pages, exports, logs, database columns."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib import admin as django_admin
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests.architecture.test_access import TABLE
from tests.factories import api_client, make_admin
from tests.trailer.test_pages_access import ADMIN_PAGES, PAGES
from tests.workspaces.scene import make_scene, observe
from workspaces.models import Workspace

if TYPE_CHECKING:
    from rest_framework.test import APIClient

pytestmark = pytest.mark.django_db
PLAIN = "no-secret-at-all-1234"
CANARIES = {
    "environment": "canary-environment-5e1f",
    "changed environment": "canary-environment-77aa",
    "refused environment": "canary-refused-09c2",
    "registry": "canary-registry-b81d",
    "build secret": "canary-build-4c1e",
    "changed build secret": "canary-build-9d02",
    "refused build secret": "canary-build-e7a5",
    "password": "canary-password-3d4e",
    "webhook": "canary-webhook-2c6b-0123456789abcdef0123",
    "variable": "canary-variable-91fe",
    "git": "canary-git-token-4af0",
    "refused git": "canary-git-refused-8d21",
    "token": "",
}


class Sinks:
    """Everything that was read, with where."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def keep(self, where: str, answer: Any) -> Any:
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        self.texts[where] = f"{dict(answer.headers)} {body.decode(errors='replace')}"
        return answer


@pytest.fixture(autouse=True)
def _quick(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def test_no_secret_comes_out_anywhere(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    sinks = Sinks()
    ids: dict[str, str] = {}
    scene = make_scene()
    admin = make_admin("root", password=CANARIES["password"])
    client = api_client(scene.owner)
    _put_in(sinks, client, scene, ids)
    _sign_in(sinks)
    for who, user in (("owner", scene.owner), ("admin", admin)):
        _read_api(sinks, who, api_client(user), ids)
        _read_pages(sinks, who, user, ids)
    _read_admin(sinks, admin)
    _read_database(sinks)
    sinks.texts["logs"] = caplog.text + "".join(map(repr, caplog.records))
    sinks.texts["output"] = "".join(capfd.readouterr())
    assert len(sinks.texts) > 120
    found = [
        (name, where)
        for name, canary in CANARIES.items()
        for where, text in sinks.texts.items()
        if canary and canary in text
    ]
    assert found == []
    # The same look finds what is no secret.
    seen = {where.split()[0] for where, text in sinks.texts.items() if PLAIN in text}
    assert {"create", "owner", "admin", "table"} <= seen


def _put_in(sinks: Sinks, client: APIClient, scene: Any, ids: dict[str, str]) -> None:
    """As a user does it; a refused request must not repeat what it refuses."""
    url = "/api/v1/workspaces/"
    secret = {"PASSWORD": CANARIES["environment"]}
    made = sinks.keep(
        "create", client.post(url, scene.body(secret_env=secret, env={"MODE": PLAIN}))
    )
    assert made.status_code == 201
    ids["workspace"] = made.json()["id"]
    own = f"{url}{ids['workspace']}/"
    changed = {"secret_env": {"PASSWORD": CANARIES["changed environment"], "B": "b"}}
    for where, path, body in (
        ("plan", "plan/", changed),
        ("clone", "clone/", {"name": "copy"}),
        ("redeploy", "redeploy/", {}),
    ):
        answer = sinks.keep(where, client.post(f"{own}{path}", body))
        assert answer.status_code < 300, answer.content
    assert sinks.keep("update", client.patch(own, changed)).status_code == 200
    back = sinks.keep("rollback", client.post(f"{own}rollback/", {"revision": 1}))
    assert back.status_code == 202
    observe(Workspace.objects.get(pk=ids["workspace"]))
    assert client.post(f"{own}snapshot/", {"name": "saved"}).status_code == 202
    _put_in_badly(sinks, client, own)
    _put_in_others(sinks, client, scene, ids)


def _put_in_badly(sinks: Sinks, client: APIClient, own: str) -> None:
    for number, bad in enumerate(
        (
            {"secret_env": {"=": CANARIES["refused environment"]}},
            {"secret_env": {"A": [CANARIES["refused environment"]]}},
            {"secret_env": {"A": CANARIES["refused environment"]}, "cpus": -1},
            {"secret_env": [CANARIES["refused environment"]]},
        )
    ):
        refused = sinks.keep(f"refused {number}", client.patch(own, bad))
        assert refused.status_code == 400


def _put_in_others(sinks: Sinks, client: APIClient, scene: Any, ids: dict[str, str]) -> None:
    registry = {"server": "registry.example.com", "password": CANARIES["registry"]}
    made = sinks.keep("registry", client.post("/api/v1/registries/", registry))
    ids["registry"] = made.json()["id"]
    ids |= _put_in_build(sinks, client, scene)
    stack = {
        "name": "shop",
        "host": str(scene.host.pk),
        "repository": "https://git.example.com/shop.git",
        "webhook_secret": CANARIES["webhook"],
        "secret_variables": {"KEY": CANARIES["variable"]},
        "credential": {"token": CANARIES["git"]},
    }
    both = {"token": CANARIES["refused git"], "deploy_key": CANARIES["refused git"]}
    refused = client.post("/api/v1/stacks/", {**stack, "credential": both})
    assert sinks.keep("refused stack", refused).status_code == 400
    made = sinks.keep("stack", client.post("/api/v1/stacks/", stack))
    assert made.status_code == 201, made.content
    ids["stack"] = made.json()["id"]
    ids |= {
        "host": str(scene.host.pk),
        "volume": str(scene.volume.pk),
        "network": str(scene.network.pk),
        "user": str(scene.owner.pk),
    }


def _put_in_build(sinks: Sinks, client: APIClient, scene: Any) -> dict[str, str]:
    url, refused = "/api/v1/images/", CANARIES["refused build secret"]
    image = {
        "name": "tool",
        "host": str(scene.host.pk),
        "kind": "build",
        "dockerfile": f"FROM busybox\nRUN --mount=type=secret,id=token echo {PLAIN}\n",
        "build_secrets": {"token": CANARIES["build secret"]},
    }
    attempts: list[dict[str, Any]] = [
        {"build_secrets": {"a b": refused}},
        {"build_secrets": {"token": [refused]}},
        {"build_secrets": [refused]},
        {"build_secrets": {"token": refused}, "dockerfile": "# syntax=x\nFROM busybox"},
    ]
    for number, bad in enumerate(attempts):
        answer = sinks.keep(f"refused build {number}", client.post(url, {**image, **bad}))
        assert answer.status_code == 400
    made = sinks.keep("build secret", client.post(url, image))
    assert made.status_code == 201, made.content
    own = f"{url}{made.json()['id']}/"
    changed = {"build_secrets": {"token": CANARIES["changed build secret"]}}
    told = sinks.keep("changed build secret", client.patch(own, changed))
    assert told.json()["build_secrets"] == {"token": None}
    return {"image": told.json()["id"], "build": told.json()["current_build"]}


def _sign_in(sinks: Sinks) -> None:
    """The password itself, then one character too many; the key of the token is a secret too."""
    body = {"username": "root", "password": CANARIES["password"]}
    answer = api_client().post("/api/v1/auth/token/", body)
    CANARIES["token"] = answer.json()["token"]
    wrong = {**body, "password": f"{CANARIES['password']}x"}
    sinks.keep("wrong password", api_client().post("/api/v1/auth/token/", wrong))
    sinks.keep("wrong password in a page", Client().post("/login/", wrong))
    sinks.keep("wrong password in the admin", Client().post("/admin/login/", wrong))


def _read_api(sinks: Sinks, who: str, client: APIClient, ids: dict[str, str]) -> None:
    for path, route in TABLE.items():
        if "GET" in route.methods and (not route.kind or route.kind in ids):
            address = f"/api/v1/{path.replace('{id}', ids.get(route.kind, ''))}"
            sinks.keep(f"{who} GET {path}", client.get(address))


def _read_pages(sinks: Sinks, who: str, user: Any, ids: dict[str, str]) -> None:
    client = Client()
    client.force_login(user)
    for page in (*PAGES, *ADMIN_PAGES, "/stacks/", f"/stacks/{ids['stack']}/"):
        sinks.keep(f"{who} page {page}", client.get(page.format(**ids)))


def _read_admin(sinks: Sinks, user: Any) -> None:
    client = Client()
    client.force_login(user)
    for model in django_admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        listed = sinks.keep(f"admin list {name}", client.get(reverse(f"{name}_changelist")))
        assert listed.status_code == 200, name
        for row in model._default_manager.all()[:3]:
            for verb in ("change", "history"):
                address = reverse(f"{name}_{verb}", args=[row.pk])
                sinks.keep(f"admin {verb} {name} {row.pk}", client.get(address))


def _read_database(sinks: Sinks) -> None:
    for model in apps.get_models():
        table = connection.ops.quote_name(model._meta.db_table)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")  # noqa: S608 - the models' own names
            sinks.texts[f"table {table}"] = repr(cursor.fetchall())
