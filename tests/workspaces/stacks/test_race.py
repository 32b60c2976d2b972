"""Workers that reach for the same stacks at the same moment; run on both databases."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connections
from django.utils import timezone

from tests.factories import make_host, make_stack, make_user
from tests.workspaces.stacks.scene import WEB, fresh, make_stack_scene
from trailer.audit.models import AuditEntry
from trailer.sealed import seal
from workspaces.models import Workspace
from workspaces.stacks.choices import Trigger
from workspaces.stacks.models import Stack, Sync
from workspaces.stacks.services.webhook import webhook_receive
from workspaces.stacks.sync.engine import work_once
from workspaces.stacks.sync.lease import claim
from workspaces.stacks.sync.queue import sync_request

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.conf import LazySettings

pytestmark = pytest.mark.django_db(transaction=True)


def together(count: int, act: Callable[[], object]) -> None:
    gate = threading.Barrier(count)

    def run() -> None:
        gate.wait(10)
        try:
            act()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_no_two_workers_claim_one_stack_and_no_more_than_allowed_claim_any(
    settings: LazySettings,
) -> None:
    settings.TRAILER_STACK_PARALLEL = 3
    owner, host = make_user(), make_host()
    for _ in range(5):
        make_stack(host, owner, due_at=timezone.now())
    claimed: list[UUID] = []

    def act() -> None:
        lease = claim(timezone.now())
        if lease is not None:
            claimed.append(lease.stack_id)

    together(8, act)
    assert len(claimed) == len(set(claimed)) == 3


def test_requests_at_once_wait_as_one(settings: LazySettings) -> None:
    stack = make_stack()
    asked: list[UUID] = []

    def act() -> None:
        asked.append(sync_request(stack.pk, trigger=Trigger.DEPLOY).pk)

    together(6, act)
    assert len(asked) == 6
    assert len(set(asked)) == 1


def test_one_delivery_that_reaches_several_processes_at_once_asks_once() -> None:
    secret, body = "0123456789abcdef" * 2, json.dumps({"ref": "refs/heads/main"}).encode()
    stack = make_stack()
    sealed = seal(stack, "webhook_secret_token", secret)
    Stack.objects.filter(pk=stack.pk).update(webhook_secret_token=sealed)
    headers = {"X-Gitlab-Token": secret, "X-Gitlab-Event-UUID": "one"}
    reasons: list[str] = []
    together(6, lambda: reasons.append(webhook_receive(stack.pk, headers, body)[1]))
    assert len(reasons) == 6
    assert len([reason for reason in reasons if not reason]) == 1
    assert AuditEntry.objects.filter(action="stack.webhook").count() == 1


def test_many_workers_deploy_a_stack_once(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = make_stack_scene()
    scene.repository_again(monkeypatch)
    scene.repository.push(WEB.format(mode="one") + "  job: {image: app:1}\n")
    stack = scene.create()
    for _ in range(12):
        Stack.objects.filter(due_at__isnull=False).update(due_at=timezone.now())
        together(3, work_once)
        scene.agent()
        if fresh(stack).status == "synced":
            break
    assert fresh(stack).status == "synced", fresh(stack).message
    assert Sync.objects.count() == 1
    assert sorted(Workspace.objects.values_list("service", "revision")) == [("job", 1), ("web", 1)]
