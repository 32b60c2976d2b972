"""Stacks over REST, and their webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.db.models import F

from tests.factories import api_client, make_grant, make_stack, make_user
from tests.workspaces.stacks.scene import SECRET, fresh
from trailer.access.models import Role
from trailer.audit.models import AuditEntry
from workspaces.stacks.choices import Phase, SyncOutcome
from workspaces.stacks.models import Stack, Sync, WebhookDelivery
from workspaces.stacks.services import replays, webhook

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene

URL = "/api/v1/stacks/"
HOOK_SECRET = "0123456789abcdef0123456789abcdef"


def body(scene: StackScene, **fields: Any) -> dict[str, Any]:
    required = {"name": "shop", "host": str(scene.host.pk), "repository": "https://git.test/a.git"}
    return {**required, **fields}


def test_a_stack_is_created_and_its_secrets_never_come_back(scene: StackScene) -> None:
    client = api_client(scene.owner)
    secrets = {
        "credential": {"username": "bot", "token": SECRET},
        "webhook_secret": SECRET * 3,
        "secret_variables": {"KEY": SECRET},
    }
    answer = client.post(URL, body(scene, **secrets))
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["credential"] == {"kind": "token", "username": "bot"}
    assert made["secret_variables"] == {"KEY": None}
    assert (made["status"], made["branch"], made["poll_interval"]) == ("syncing", "main", 300)
    row = Stack.objects.get()
    tokens = f"{row.credential_token}{row.webhook_secret_token}{row.secret_variables_token}"
    scene.work()
    later = client.get(f"{URL}{row.pk}/").content + client.get(f"{URL}{row.pk}/syncs/").content
    assert SECRET not in answer.content.decode() + later.decode() + tokens
    assert SECRET not in str(list(AuditEntry.objects.values()))
    members = client.get(f"{URL}{row.pk}/").json()["services"]
    assert [(member["name"], member["status"]) for member in members] == [("web", "running")]
    listed = client.get(f"/api/v1/workspaces/?stack={row.pk}").json()["results"]
    assert [(one["name"], one["allowed_actions"]) for one in listed] == [
        ("shop-web", ["redeploy", "snapshot", "clone"])
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Shop"),
        ("name", "shop-"),
        ("name", "s" * 41),
        ("repository", ""),
        ("repository", "not a repository"),
        ("branch", "a..b"),
        ("branch", "-x"),
        ("path", "../up"),
        ("poll_interval", -1),
        ("poll_interval", 10**9),
        ("poll_interval", "300"),
        ("webhook_secret", "short"),
        ("variables", {"1X": "a"}),
        ("variables", {"X": 5}),
        ("variables", []),
        ("secret_variables", {"KEY": None}),
        ("credential", {"username": "bot"}),
        ("credential", {"token": "a", "deploy_key": "b"}),
        ("host", "nowhere"),
        ("nonsense", 1),
    ],
)
def test_bad_input_is_refused_by_field(scene: StackScene, field: str, value: Any) -> None:
    answer = api_client(scene.owner).post(URL, body(scene, **{field: value}))
    assert answer.status_code == 400, answer.content
    assert [name.partition(".")[0] for name in answer.json()["fields"]] == [field]
    assert not Stack.objects.exists()


def test_a_name_is_taken_once_per_host(scene: StackScene) -> None:
    client = api_client(scene.owner)
    assert client.post(URL, body(scene)).status_code == 201
    again = client.post(URL, body(scene))
    assert (again.status_code, list(again.json()["fields"])) == (400, ["name"])


def test_name_and_host_stay_and_secrets_may_be_kept(scene: StackScene) -> None:
    client = api_client(scene.owner)
    made = client.post(URL, body(scene, secret_variables={"KEY": SECRET})).json()
    url = f"{URL}{made['id']}/"
    assert client.patch(url, {"name": "other"}).status_code == 400
    kept = client.patch(url, {"name": "shop", "secret_variables": {"KEY": None, "B": "x"}})
    assert kept.json()["secret_variables"] == {"B": None, "KEY": None}
    assert client.patch(url, {"enabled": False}, HTTP_IF_MATCH="1").status_code == 409
    assert client.patch(url, {"enabled": False}).status_code == 200
    assert client.post(f"{url}deploy/").status_code == 409


def test_an_editor_may_deploy_but_not_say_where_the_files_come_from(scene: StackScene) -> None:
    stack, editor = make_stack(scene.host, scene.owner), make_user()
    make_grant(stack, editor, Role.EDITOR)
    client = api_client(editor)
    url = f"{URL}{stack.pk}/"
    assert client.post(f"{url}deploy/").status_code == 202
    assert client.patch(url, {"variables": {"A": "b"}}).status_code == 200
    assert client.patch(url, {"repository": "https://git.test/evil.git"}).status_code == 403
    assert fresh(stack).repository != "https://git.test/evil.git"


def test_who_sees_a_stack_sees_its_services(scene: StackScene) -> None:
    stack, viewer = scene.create(), make_user()
    scene.work()
    web = scene.service("web")
    client = api_client(viewer)
    assert client.get(f"/api/v1/workspaces/{web.pk}/").status_code == 404
    make_grant(stack, viewer, Role.VIEWER)
    assert client.get(f"/api/v1/workspaces/{web.pk}/").json()["allowed_actions"] == []
    assert client.get("/api/v1/workspaces/").json()["count"] == 1
    refused = api_client(scene.owner).patch(f"/api/v1/workspaces/{web.pk}/", {"cpus": 1})
    assert (refused.status_code, refused.json()["code"]) == (409, "of_a_stack")
    assert "stack shop" in refused.json()["message"]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"revision": 9}, 400),
        ({"commit": "abc"}, 400),
        ({"commit": "b" * 40}, 400),
        ({"commit": "a" * 12}, 202),
        ({"revision": 1, "commit": "a" * 12}, 400),
        ({"revision": 1}, 202),
        ({}, 400),
        ({"sync": "00000000-0000-0000-0000-000000000000"}, 400),
        ({"when": "yesterday"}, 400),
    ],
)
def test_a_rollback_names_what_it_goes_back_to(
    scene: StackScene, given: dict[str, Any], status: int
) -> None:
    stack = make_stack(scene.host, scene.owner)
    answer = api_client(scene.owner).post(f"{URL}{stack.pk}/rollback/", given)
    assert answer.status_code == status, answer.content
    assert Sync.objects.filter(target__isnull=False).exists() == (status == 202)
    assert not fresh(stack).pinned


# --- webhooks ---


def send(
    stack_id: Any, payload: Any, *, secret: str = HOOK_SECRET, under: str = "", **headers: str
) -> Any:
    raw = json.dumps(payload).encode()
    signature = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    given = {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Event": "push", **headers}
    return api_client().post(
        f"{under}/webhooks/stacks/{stack_id}/",
        raw,
        content_type="application/json",
        headers={name: value for name, value in given.items() if value},
    )


PUSH = {"ref": "refs/heads/main", "after": "a" * 40}


def hooked(scene: StackScene) -> Stack:
    stack = scene.create(webhook_secret=HOOK_SECRET)
    scene.work()
    return stack


def test_a_signed_push_is_answered_with_a_link_to_the_sync(scene: StackScene) -> None:
    stack = hooked(scene)
    answer = send(stack.pk, PUSH)
    assert answer.status_code == 202, answer.content
    sync = Sync.objects.get(pk=answer.json()["sync"])
    assert (sync.trigger, sync.forced, sync.stack_id) == ("webhook", True, stack.pk)
    assert answer.json()["url"].endswith(f"/api/v1/syncs/{sync.pk}/")
    seen = api_client(scene.owner).get(f"/api/v1/syncs/{sync.pk}/")
    assert seen.json()["phase"] == "queued"
    # A body without a commit asks, and asking again joins the one that waits.
    bare = {"ref": "refs/heads/main"}
    assert [send(stack.pk, bare).json() for _ in range(2)] == [answer.json()] * 2


def test_a_webhook_may_be_sent_below_the_api_too(scene: StackScene) -> None:
    stack = hooked(scene)
    assert send(stack.pk, PUSH, under="/api/v1").json()["status"] == "accepted"
    assert send(stack.pk, PUSH, under="/api/v1", secret="x" * 32).status_code == 401


def test_a_webhook_to_no_id_is_answered_in_the_shape_of_errors() -> None:
    answer = send("no-id", PUSH)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("payload", "headers", "word"),
    [
        ({"ref": "refs/heads/other"}, {}, "other"),
        ({"ref": "refs/tags/v1"}, {}, "refs/tags/v1"),
        (PUSH, {"X-GitHub-Event": "ping"}, "ping"),
        ({}, {}, "branch"),
        ([], {}, "branch"),
    ],
)
def test_what_is_no_push_to_the_branch_is_ignored_with_a_reason(
    scene: StackScene, payload: Any, headers: dict[str, str], word: str
) -> None:
    stack = hooked(scene)
    answer = send(stack.pk, payload, **headers)
    assert (answer.status_code, answer.json()["status"]) == (202, "ignored")
    assert word in answer.json()["reason"]
    assert Sync.objects.count() == 1


def test_a_bad_signature_is_401_no_secret_503_no_stack_404(scene: StackScene) -> None:
    stack = hooked(scene)
    assert send(stack.pk, PUSH, secret="x" * 32).status_code == 401
    assert send(stack.pk, PUSH, **{"X-Hub-Signature-256": ""}).status_code == 401
    bare = make_stack(scene.host, scene.owner)
    assert send(bare.pk, PUSH).status_code == 503
    assert send("00000000-0000-0000-0000-000000000000", PUSH).status_code == 404
    assert Sync.objects.filter(stack=stack).count() == 1
    # Whoever knows the address could fill the audit otherwise.
    assert not AuditEntry.objects.filter(action="stack.webhook").exists()


def test_a_webhook_is_written_down_with_its_sync_or_not_at_all(
    scene: StackScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = hooked(scene)

    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(webhook, "sync_request", fail)
    assert send(stack.pk, PUSH).status_code >= 500
    assert not AuditEntry.objects.filter(action="stack.webhook").exists()
    monkeypatch.undo()
    assert send(stack.pk, PUSH).status_code == 202
    assert AuditEntry.objects.filter(action="stack.webhook").count() == 1


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"X-GitHub-Delivery": "d-1"}, {"X-GitHub-Delivery": "d-1"}),
        ({"X-Gitea-Delivery": "d-1"}, {"X-Gitea-Delivery": "d-1"}),
        # The number is not signed: another one, or none, does not make it another delivery.
        ({"X-GitHub-Delivery": "d-1"}, {"X-GitHub-Delivery": "d-2"}),
        ({"X-GitHub-Delivery": "d-1"}, {}),
    ],
)
def test_a_delivery_that_is_sent_again_makes_no_second_sync(
    scene: StackScene, first: dict[str, str], again: dict[str, str]
) -> None:
    stack = hooked(scene)
    sync = send(stack.pk, PUSH, **first).json()["sync"]
    scene.work()
    answer = send(stack.pk, PUSH, **again)
    assert (answer.status_code, answer.json()["status"]) == (202, "ignored")
    assert "was received already, at " in answer.json()["reason"]
    assert answer.json()["sync"] == sync
    assert Sync.objects.filter(stack=stack).count() == 2
    assert AuditEntry.objects.filter(action="stack.webhook").count() == 1


def test_the_same_number_over_another_body_is_the_same_delivery(scene: StackScene) -> None:
    stack = hooked(scene)
    hook = {"X-Gitlab-Token": HOOK_SECRET, "X-Hub-Signature-256": "", "X-GitHub-Event": ""}
    for number, expected in (("a", "accepted"), ("a", "ignored"), ("b", "accepted")):
        answer = send(stack.pk, PUSH, **hook, **{"Idempotency-Key": number})
        assert answer.json()["status"] == expected
        scene.work()
    answer = send(stack.pk, {"ref": "refs/heads/main"}, **hook, **{"Idempotency-Key": "b"})
    assert answer.json()["status"] == "ignored"


def test_other_pushes_other_stacks_and_later_times_are_other_deliveries(scene: StackScene) -> None:
    stack = hooked(scene)
    other = scene.create(name="other", webhook_secret=HOOK_SECRET)
    number = {"X-GitHub-Delivery": "d-1"}
    assert send(stack.pk, PUSH, **number).json()["status"] == "accepted"
    assert send(other.pk, PUSH, **number).json()["status"] == "accepted"
    newer = {**PUSH, "after": "b" * 40}
    assert send(stack.pk, newer, **{"X-GitHub-Delivery": "d-2"}).json()["status"] == "accepted"
    WebhookDelivery.objects.update(received_at=F("received_at") - replays.WINDOW)
    assert send(stack.pk, PUSH, **number).json()["status"] == "accepted"
    # What is too old to count is gone.
    assert stack.deliveries.count() == 2


def test_a_delivery_whose_sync_failed_may_be_sent_again(scene: StackScene) -> None:
    stack = hooked(scene)
    number = {"X-GitHub-Delivery": "d-1"}
    first = send(stack.pk, PUSH, **number).json()["sync"]
    Sync.objects.filter(pk=first).update(phase=Phase.DONE, outcome=SyncOutcome.FAILED)
    second = send(stack.pk, PUSH, **number).json()
    assert (second["status"], second["sync"] != first) == ("accepted", True)
    assert send(stack.pk, PUSH, **number).json()["status"] == "ignored"


def test_only_so_many_deliveries_are_remembered(
    scene: StackScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "KEPT", 3)
    stack = hooked(scene)
    for commit in "abcde":
        assert send(stack.pk, {**PUSH, "after": commit * 40}).json()["status"] == "accepted"
    assert stack.deliveries.count() == 3
    assert send(stack.pk, {**PUSH, "after": "e" * 40}).json()["status"] == "ignored"


def test_a_disabled_stack_ignores_pushes(scene: StackScene) -> None:
    stack = hooked(scene)
    Stack.objects.filter(pk=stack.pk).update(enabled=False)
    answer = send(stack.pk, PUSH)
    assert (answer.status_code, answer.json()["status"]) == (202, "ignored")
