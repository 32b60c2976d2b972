"""A server that starts looks at every stack, once, however many workers it has."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from celery.signals import worker_ready
from django.utils import timezone

from tests.factories import make_stack
from trailer.celery import app
from trailer.leases.models import JobLease
from workspaces.stacks.models import Stack
from workspaces.stacks.tasks import check_stacks

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start removes what git left: not what others on this machine have."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_worker_that_is_ready_has_the_stacks_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, **_: sent.append(name))
    worker_ready.send(sender=None)
    assert sent == ["stacks.check_all"]


def test_a_worker_starts_although_the_queue_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(name: str, **_: Any) -> None:
        raise ConnectionError(name)

    monkeypatch.setattr(app, "send_task", away)
    assert not [said for _, said in worker_ready.send(sender=None) if said is not None]


@pytest.mark.django_db
def test_workers_that_start_together_look_at_each_stack_once() -> None:
    later = timezone.now() + timedelta(hours=1)
    make_stack(poll_at=later)

    def is_due() -> bool:
        check_stacks()
        return Stack.objects.filter(poll_at__lte=timezone.now()).exists()

    assert is_due()
    Stack.objects.update(poll_at=later)
    assert not is_due()
    JobLease.objects.update(begun_at=timezone.now() - timedelta(seconds=11))
    assert is_due()
