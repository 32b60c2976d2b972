"""What agents report: ordered by (epoch, seq), never backwards, into observed columns only."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.protocol.report import FieldChange, WorkspaceEvent, WorkspaceStatus
from tests.factories import make_host
from tests.workspaces.scene import observe
from trailer import events
from trailer.errors import Invalid
from workspaces import choices
from workspaces.models import Event, Workspace
from workspaces.selectors import with_effective_status, workspace_get
from workspaces.services import workspace_event_record, workspace_observed, workspace_update
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene

STATUSES = choices.WorkspaceStatus.values


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the browsers are told, in order."""
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(events, "publish", lambda kind, pk, **_: heard.append((kind, str(pk))))
    return heard


def event(workspace: Workspace, **fields: Any) -> WorkspaceEvent:
    defaults: dict[str, Any] = {
        "seq": 1,
        "workspace_id": str(workspace.pk),
        "event": "replace",
        "cause": "env changed",
        "at": "2026-01-31T08:00:00.123456789Z",
        "cycle": 7,
        "revision": 1,
    }
    return WorkspaceEvent(**{**defaults, **fields})


def test_a_report_fills_the_observed_columns_only(scene: Scene) -> None:
    workspace = scene.create_full()
    assert observe(
        workspace,
        "error",
        seq=4,
        message="it broke",
        started_at="2026-01-31T08:00:00.123456789Z",
        restart_count=3,
        health="unhealthy",
        exit_code=137,
    )
    after = workspace_get(workspace.pk)
    assert (after.observed_status, after.message, after.restart_count) == ("error", "it broke", 3)
    assert (after.health, after.exit_code, after.container_id) == ("unhealthy", 137, "c" * 64)
    assert after.started_at is not None
    assert after.started_at.microsecond == 123456
    assert (after.observed_revision, after.report_epoch, after.report_seq) == (1, 1, 4)
    assert after.observed_at is not None
    assert (after.revision, after.pending_status) == (1, "deployment_pending")
    assert after.updated_at == workspace.updated_at


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_order_and_repetition_of_reports_ends_with_the_newest(
    scene: Scene, data: st.DataObject
) -> None:
    workspace = scene.create(name=f"w-{uuid4().hex[:12]}")
    keys = data.draw(
        st.lists(
            st.tuples(st.integers(1, 3), st.integers(1, 6)), min_size=1, max_size=8, unique=True
        )
    )
    reports = [
        (epoch, seq, data.draw(st.sampled_from(STATUSES)), data.draw(st.integers(0, 3)))
        for epoch, seq in keys
    ]
    arrivals = data.draw(st.permutations(reports + data.draw(st.lists(st.sampled_from(reports)))))
    for epoch, seq, status, revision in arrivals:
        observe(workspace, status, epoch=epoch, seq=seq, revision=revision)
    newest = max(reports, key=lambda report: report[:2])
    row = Workspace.objects.get(pk=workspace.pk)
    assert (row.report_epoch, row.report_seq, row.observed_status) == newest[:3]
    # Revision 1 is all there is: nothing above it counts, and what was seen stays seen.
    assert row.observed_revision <= 1
    assert row.observed_revision >= min(newest[3], 1)


def test_a_seen_revision_is_never_unseen(scene: Scene) -> None:
    workspace = scene.create()
    workspace = workspace_update(actor=scene.owner, workspace=workspace, data={"cpus": 1})
    observe(workspace, seq=1, revision=2)
    observe(workspace, seq=2, revision=1)
    assert workspace_get(workspace.pk).observed_revision == 2
    observe(workspace, seq=3, revision=99)
    assert workspace_get(workspace.pk).observed_revision == 2


def test_a_stale_or_repeated_report_is_dropped(scene: Scene) -> None:
    workspace = scene.create()
    assert observe(workspace, "running", epoch=2, seq=5)
    assert not observe(workspace, "stopped", epoch=2, seq=5)
    assert not observe(workspace, "stopped", epoch=2, seq=4)
    assert not observe(workspace, "stopped", epoch=1, seq=9)
    assert observe(workspace, "stopped", epoch=3, seq=1)


def test_a_host_speaks_only_of_its_own_workspaces(scene: Scene) -> None:
    workspace = scene.create()
    item = WorkspaceStatus(seq=1, workspace_id=str(workspace.pk), revision=1, status="stopped")
    assert not workspace_observed(make_host(), item, 1)
    assert workspace_get(workspace.pk).report_seq == 0
    assert not workspace_event_record(make_host(), event(workspace), 1)


def test_a_report_about_a_deleted_workspace_is_dropped(scene: Scene) -> None:
    workspace = scene.create()
    host = workspace.host
    Workspace.objects.all().delete()
    item = WorkspaceStatus(seq=1, workspace_id=str(workspace.pk), revision=1, status="stopped")
    assert not workspace_observed(host, item, 1)
    assert not workspace_event_record(host, event(workspace), 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "exploded"},
        {"status": ""},
        {"workspace_id": "x"},
        {"seq": -1},
        {"seq": 2**63},
        {"revision": -1},
        {"revision": 2**31},
        {"container_id": "c" * 65},
        {"container_id": "\0"},
        {"restart_count": -1},
        {"restart_count": 2**40},
        {"exit_code": 2**40},
        {"health": "h" * 21},
        {"started_at": "yesterday"},
        {"started_at": "2026-13-01T00:00:00Z"},
        {"started_at": "2026-01-01T00:00:00"},
    ],
)
def test_a_report_that_makes_no_sense_is_refused_for_good(
    scene: Scene, fields: dict[str, Any]
) -> None:
    workspace = scene.create()
    values: dict[str, Any] = {
        "seq": 1,
        "workspace_id": str(workspace.pk),
        "revision": 1,
        "status": "running",
    }
    with pytest.raises(Invalid) as caught:
        workspace_observed(workspace.host, WorkspaceStatus(**{**values, **fields}), 1)
    assert caught.value.message.endswith(".")
    assert workspace_get(workspace.pk).report_seq == 0


def test_the_engines_year_one_means_never(scene: Scene) -> None:
    workspace = scene.create()
    observe(workspace, started_at="0001-01-01T00:00:00Z")
    assert workspace_get(workspace.pk).started_at is None


def test_text_that_no_table_takes_is_made_storable(scene: Scene) -> None:
    workspace = scene.create()
    observe(workspace, message="a\0b" + "x" * 100_000)
    assert workspace_get(workspace.pk).message.startswith("abxx")
    assert len(workspace_get(workspace.pk).message) == 64 * 1024


def test_browsers_hear_only_of_what_moved(scene: Scene, published: list[tuple[str, str]]) -> None:
    workspace = scene.create()
    published.clear()
    observe(workspace, seq=1)
    assert published == [("workspace", str(workspace.pk))]
    observe(workspace, seq=2)
    assert len(published) == 1
    observe(workspace, seq=1, message="stale")
    assert len(published) == 1
    observe(workspace, seq=3, health="healthy")
    assert len(published) == 2


def test_the_database_computes_the_same_status(scene: Scene) -> None:
    rows = Workspace.objects.filter(pk=scene.create().pk)
    for observed, pending, seen in product(STATUSES, ["", *STATUSES], (0, 1)):
        rows.update(observed_status=observed, pending_status=pending, observed_revision=seen)
        shown = with_effective_status(rows).get()
        assert vars(shown)["effective_status"] == workspace_status(shown), (
            observed,
            pending,
            seen,
        )


def test_an_event_is_kept_once_with_whoever_caused_it(scene: Scene) -> None:
    workspace = scene.create()
    workspace = workspace_update(actor=scene.admin, workspace=workspace, data={"cpus": 1})
    item = event(
        workspace,
        revision=2,
        changes=(FieldChange(field="cpus", old=None, new=1.0, effect="replace"),),
    )
    assert workspace_event_record(workspace.host, item, 3)
    assert not workspace_event_record(workspace.host, item, 3)
    row = Event.objects.get(report_epoch=3)
    assert (row.kind, row.cause, row.cycle, row.revision) == ("replace", "env changed", 7, 2)
    assert row.actor == scene.admin
    assert row.changes == [{"field": "cpus", "from": None, "to": 1.0, "effect": "replace"}]
    assert workspace_event_record(workspace.host, item, 4)


def test_an_event_without_a_revision_has_no_actor(scene: Scene) -> None:
    workspace = scene.create()
    workspace_event_record(workspace.host, event(workspace, event="heal", revision=None), 1)
    assert Event.objects.get(kind="heal").actor is None


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("heal", "container was removed outside Trailer"),
        ("heal", "renamed outside Trailer"),
        ("replace", "limits were changed outside Trailer"),
        ("heal", "paused outside Trailer (the agent was interrupted while doing it)"),
    ],
)
def test_healing_is_nobodys_act(scene: Scene, kind: str, cause: str) -> None:
    workspace = scene.create()
    healed = event(workspace, event=kind, cause=cause, revision=1)
    assert workspace_event_record(workspace.host, healed, 1)
    row = Event.objects.get(kind=kind)
    assert (row.actor, row.actor_name, row.revision) == (None, "engine", 1)


def test_a_secret_in_an_agents_event_is_masked(scene: Scene) -> None:
    workspace = scene.create()
    change = FieldChange(field="secret_env", old={"A": "hush"}, new="hush", effect="replace")
    workspace_event_record(workspace.host, event(workspace, changes=(change,)), 1)
    assert "hush" not in str(Event.objects.get(kind="replace").changes)


@pytest.mark.parametrize(
    "fields",
    [
        {"event": ""},
        {"event": "e" * 33},
        {"at": "noon"},
        {"cycle": -1},
        {"cycle": 2**64},
        {"revision": -1},
        {"workspace_id": ""},
        {"seq": -1},
    ],
)
def test_an_event_that_makes_no_sense_is_refused_for_good(
    scene: Scene, fields: dict[str, Any]
) -> None:
    workspace = scene.create()
    with pytest.raises(Invalid):
        workspace_event_record(workspace.host, event(workspace, **fields), 1)
    assert Event.objects.count() == 1
