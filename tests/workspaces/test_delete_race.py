"""A workspace that goes while its agent reports of it; run on both databases."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, connections, transaction

from agent.protocol.report import WorkspaceEvent, WorkspaceStatus
from tests.factories import make_admin, make_host, make_workspace
from tests.ground.wait import eventually
from tests.workspaces.agent_client import AgentClient
from workspaces.control import ingest
from workspaces.models import Event, Workspace
from workspaces.services import observed, workspace_delete, workspace_event_record

if TYPE_CHECKING:
    from hosts.models import Host

pytestmark = pytest.mark.django_db(transaction=True)


def event(workspace: Workspace, seq: int) -> WorkspaceEvent:
    return WorkspaceEvent(
        seq=seq,
        workspace_id=str(workspace.pk),
        event="create",
        cause="no container yet",
        at="2026-03-01T12:00:00Z",
    )


def somebody_waits() -> bool:
    """For a lock of ours. SQLite can't tell, and there nobody gets any further than that."""
    if connection.vendor == "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def in_thread(outcome: list[object], work: Any) -> threading.Thread:
    def run() -> None:
        try:
            outcome.append(work())
        except IntegrityError as error:
            outcome.append(error)
        finally:
            connections.close_all()

    return threading.Thread(target=run)


def test_an_event_is_before_a_deletion_or_goes_with_it() -> None:
    admin, workspace = make_admin(), make_workspace()
    outcome: list[object] = []
    deletion = in_thread(outcome, lambda: workspace_delete(actor=admin, workspace=workspace))
    with transaction.atomic():
        assert workspace_event_record(workspace.host, event(workspace, 1), 1)
        deletion.start()
        eventually(somebody_waits, 10, "the deletion does not wait for the event")
    deletion.join(30)
    assert outcome == [None]
    assert not Workspace.objects.exists()
    assert not Event.objects.exists()


def test_a_deletion_never_comes_between_the_look_and_the_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin, workspace = make_admin(), make_workspace()
    looked, deleted = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        looked.set()
        # Nobody can get by: it is over only when this has waited in vain.
        deleted.wait(0.5)

    monkeypatch.setattr(observed, "_actor_of", slow)
    outcome: list[object] = []
    report = in_thread(
        outcome, lambda: workspace_event_record(workspace.host, event(workspace, 1), 1)
    )
    report.start()
    assert looked.wait(10)
    workspace_delete(actor=admin, workspace=workspace)
    deleted.set()
    report.join(30)
    assert outcome == [True]
    assert not Event.objects.exists()


def test_an_item_whose_object_goes_between_two_statements_keeps_the_rest_of_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = make_host()
    gone, stays = make_workspace(host), make_workspace(host)

    def race(host: Host, item: WorkspaceEvent, epoch: int) -> bool:
        if item.workspace_id == str(gone.pk):
            raise IntegrityError("FOREIGN KEY constraint failed")
        return workspace_event_record(host, item, epoch)

    monkeypatch.setattr(ingest, "workspace_event_record", race)
    status = WorkspaceStatus(seq=3, workspace_id=str(stays.pk), revision=1, status="running")
    answer = AgentClient(host).report(event(gone, 1), event(stays, 2), status)
    assert answer.status_code == 200
    assert answer.json()["accepted"] == [1, 2, 3]
    assert Event.objects.get().workspace_id == stays.pk
    stays.refresh_from_db()
    assert stays.observed_status == "running"
