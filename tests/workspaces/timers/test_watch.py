"""The pass over workspaces with timers: what it stops, starts, warns of and leaves alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol.metrics import GpuSample, Metrics
from agent.protocol.metrics import WorkspaceSample as Report
from hosts.models import Host, RollupMark
from tests.workspaces.scene import URL, Scene, observe
from trailer.audit.models import AuditEntry
from workspaces.metrics import metrics_record
from workspaces.models import Event, Timer, Url, Workspace
from workspaces.services import workspace_extend, workspace_start, workspace_stop
from workspaces.services.locking import workspace_lock
from workspaces.services.timer import terminal_seen
from workspaces.timers.watch import timers_run
from workspaces.urls.access import passage

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


# More than the pace of beat, less than what counts as a gap.
_STEP = 60


class Clock:
    """Moves the server's clock; a pass happens with every step, as beat would have it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
        self.now = NOON
        self.workspace = workspace
        monkeypatch.setattr("django.utils.timezone.now", lambda: self.now)
        self.sample: dict[str, Any] | None = {"cpu_percent": 0.1, "connections": 0}
        self.gpus: dict[str, float | None] = {}

    def go(self, minutes: float) -> None:
        until = self.now + timedelta(minutes=minutes)
        while self.now < until:
            self.now = min(until, self.now + timedelta(seconds=_STEP))
            host = Host.objects.get(pk=self.workspace.host_id)
            Host.objects.filter(pk=host.pk).update(last_heartbeat=self.now)
            if self.sample is not None:
                report = Report(workspace_id=str(self.workspace.pk), **self.sample)
                cards = tuple(
                    GpuSample(id=card, utilization_percent=busy)
                    for card, busy in self.gpus.items()
                )
                metrics_record(host, Metrics(workspaces=(report,), gpus=cards or None), self.now)
            timers_run(self.now)

    def desired(self) -> str:
        return Workspace.objects.get(pk=self.workspace.pk).desired_state


@pytest.fixture
def clock(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Clock]:
    def begin(**fields: Any) -> Clock:
        workspace = scene.create(**fields)
        made = Clock(monkeypatch, workspace)
        Workspace.objects.filter(pk=workspace.pk).update(created_at=NOON - timedelta(days=1))
        Timer.objects.filter(workspace=workspace).update(settled_at=NOON - timedelta(days=1))
        workspace.refresh_from_db()
        observe(workspace)
        return made

    return begin


def kinds(workspace: Workspace) -> list[tuple[str, str]]:
    rows = Event.objects.filter(workspace=workspace).exclude(kind="created")
    return [(row.kind, row.actor_name) for row in rows.order_by("at", "received_at")]


def test_an_idle_workspace_is_warned_of_and_stopped_once_with_the_reason(
    clock: Callable[..., Clock],
) -> None:
    time = clock(idle_stop_minutes=10)
    time.go(9)
    assert time.desired() == "running"
    assert kinds(time.workspace) == [("stop_warning", "idle")]
    time.go(6)
    assert time.desired() == "stopped"
    assert kinds(time.workspace) == [("stop_warning", "idle"), ("stop_requested", "idle")]
    stop = Event.objects.get(kind="stop_requested")
    assert "Stopped because no connection" in stop.cause
    assert stop.actor is None
    assert AuditEntry.objects.filter(action="workspace.stop").get().actor_name == "idle"


@pytest.mark.parametrize(
    "sample",
    [
        {"connections": 1, "cpu_percent": 0.0},
        {"cpu_percent": 30.0},
        {"network_rx_rate": 5000.0},
    ],
)
def test_use_of_any_kind_keeps_it_up_and_its_end_starts_the_count(
    clock: Callable[..., Clock], sample: dict[str, Any]
) -> None:
    time = clock(idle_stop_minutes=10)
    time.sample = sample
    time.go(15)
    assert time.desired() == "running"
    time.sample = {"cpu_percent": 0.0, "connections": 0}
    time.go(8)
    assert time.desired() == "running"
    time.go(5)
    assert time.desired() == "stopped"


def test_an_open_terminal_is_use(clock: Callable[..., Clock]) -> None:
    time = clock(idle_stop_minutes=5)
    for _ in range(8):
        time.go(1)
        terminal_seen(time.workspace.pk)
    assert time.desired() == "running"


def test_a_visit_through_the_server_is_use_though_no_sample_shows_it(
    clock: Callable[..., Clock],
) -> None:
    """The agent comes from the container's own loopback, whose connections no sample counts."""
    time = clock(idle_stop_minutes=5)
    row = {"subdomain": "quiet", "domain": "localhost", "port": 80, "auth": "public"}
    Url.objects.create(workspace=time.workspace, **row)
    time.go(4)
    assert kinds(time.workspace) == [("stop_warning", "idle")]
    for _ in range(8):
        # As the relay asks, for every request and again while one is open.
        passage("quiet.localhost", "")
        time.go(1)
    assert time.desired() == "running"
    timer = Timer.objects.get(workspace=time.workspace)
    assert (timer.used_by, timer.warned_of) == ("an open URL", None)
    time.go(7)
    assert time.desired() == "stopped"


def test_a_visit_is_written_down_now_and_then_not_with_each_request(
    clock: Callable[..., Clock], django_assert_num_queries: Any
) -> None:
    time = clock(idle_stop_minutes=5)
    row = {"subdomain": "quiet", "domain": "localhost", "port": 80, "auth": "public"}
    Url.objects.create(workspace=time.workspace, **row)
    time.go(1)
    with django_assert_num_queries(2):
        passage("quiet.localhost", "")
    with django_assert_num_queries(1):
        passage("quiet.localhost", "")


def test_what_nobody_measures_is_never_called_idle(clock: Callable[..., Clock]) -> None:
    time = clock(idle_stop_minutes=5)
    time.sample = None
    time.go(20)
    assert time.desired() == "running"
    # From here on it is watched, and only from here on it counts.
    time.sample = {"cpu_percent": 0.0}
    time.go(4)
    assert time.desired() == "running"
    time.go(4)
    assert time.desired() == "stopped"


@pytest.fixture
def two_cards(scene: Scene) -> None:
    cards = [{"id": f"GPU-{n}", "name": "x", "index": n} for n in (0, 1)]
    Host.objects.filter(pk=scene.host.pk).update(gpus=cards)


@pytest.mark.usefixtures("two_cards")
def test_work_of_one_of_its_gpus_keeps_a_workspace_up(clock: Callable[..., Clock]) -> None:
    time = clock(idle_stop_minutes=5, gpus={"count": 2})
    time.gpus = {"GPU-0": None, "GPU-1": 60.0}
    time.go(12)
    assert time.desired() == "running"
    assert Timer.objects.get(workspace=time.workspace).used_by == "a GPU at 60 %"
    time.gpus = {"GPU-0": 0.0, "GPU-1": 2.0}
    time.go(9)
    assert time.desired() == "stopped"


@pytest.mark.usefixtures("two_cards")
def test_another_workspaces_gpu_keeps_nothing_up(clock: Callable[..., Clock]) -> None:
    time = clock(idle_stop_minutes=5, gpus={"device_ids": ["GPU-0"]})
    time.gpus = {"GPU-0": 0.0, "GPU-1": 90.0}
    time.go(9)
    assert time.desired() == "stopped"


@pytest.mark.usefixtures("two_cards")
@pytest.mark.parametrize("seen", [{}, {"GPU-0": None, "GPU-1": None}, {"GPU-0": 0.0}])
def test_a_workspace_whose_gpus_nobody_reads_is_never_called_idle(
    clock: Callable[..., Clock], seen: dict[str, float | None]
) -> None:
    """Their metrics are switched off, the driver is away, or tells of one card only."""
    time = clock(idle_stop_minutes=5, gpus={"count": 2})
    time.gpus = seen
    time.go(15)
    assert time.desired() == "running"
    time.gpus = {"GPU-0": 0.0, "GPU-1": 0.0}
    time.go(4)
    assert time.desired() == "running"
    time.go(4)
    assert time.desired() == "stopped"


def test_a_server_that_was_away_begins_to_watch_anew(clock: Callable[..., Clock]) -> None:
    time = clock(idle_stop_minutes=30)
    time.go(20)
    time.now += timedelta(hours=2)
    time.go(25)
    assert time.desired() == "running"


def test_one_click_keeps_it_running_and_the_warning_comes_again(
    clock: Callable[..., Clock], scene: Scene
) -> None:
    time = clock(idle_stop_minutes=10)
    time.go(9)
    answer = scene.client().post(f"{URL}{time.workspace.pk}/extend/", {"minutes": 30})
    assert answer.status_code == 202
    told = answer.json()["timer"]
    assert told["stops_at"] == "2026-11-16T12:39:00Z"
    assert told["extended_until"] == "2026-11-16T12:39:00Z"
    time.go(29)
    assert time.desired() == "running"
    assert [kind for kind, _ in kinds(time.workspace)].count("stop_warning") == 2
    time.go(2)
    assert time.desired() == "stopped"


def test_there_is_nothing_to_extend_where_nothing_stops(scene: Scene) -> None:
    client = scene.client()
    plain = scene.create(name="plain")
    assert client.post(f"{URL}{plain.pk}/extend/", {}).status_code == 409
    idle = scene.create(name="idle", idle_stop_minutes=5)
    assert client.post(f"{URL}{idle.pk}/extend/", {"minutes": 0}).status_code == 400
    assert client.post(f"{URL}{idle.pk}/extend/", {"hours": 1}).status_code == 400
    workspace_stop(actor=scene.owner, workspace=idle)
    assert client.post(f"{URL}{idle.pk}/extend/", {}).status_code == 409


def test_a_schedule_stops_and_starts_at_its_times(clock: Callable[..., Clock]) -> None:
    time = clock(schedule={"stop": "12:15", "start": "12:45"})
    assert time.workspace.schedule == {"stop": "15 12 * * *", "start": "45 12 * * *"}
    time.go(14)
    assert time.desired() == "running"
    time.go(2)
    assert time.desired() == "stopped"
    time.go(27)
    assert time.desired() == "stopped"
    time.go(3)
    assert time.desired() == "running"
    time.go(30)
    assert time.desired() == "running"
    assert kinds(time.workspace) == [
        ("stop_warning", "schedule"),
        ("stop_requested", "schedule"),
        ("start_requested", "schedule"),
    ]


def test_who_starts_it_after_a_scheduled_stop_is_not_stopped_again_the_same_day(
    clock: Callable[..., Clock], scene: Scene
) -> None:
    time = clock(schedule={"stop": "12:15"})
    time.go(16)
    assert time.desired() == "stopped"
    workspace_start(actor=scene.owner, workspace=time.workspace)
    time.go(60)
    assert time.desired() == "running"


def test_a_stop_that_was_due_while_the_server_was_away_is_made_up_for(
    clock: Callable[..., Clock],
) -> None:
    time = clock(schedule={"stop": "12:15"})
    time.now += timedelta(hours=2)
    time.go(1)
    assert time.desired() == "stopped"


def test_a_schedule_that_is_set_later_stops_nothing_for_what_was_due_before(
    clock: Callable[..., Clock], scene: Scene
) -> None:
    time = clock()
    time.go(30)
    answer = scene.client().patch(f"{URL}{time.workspace.pk}/", {"schedule": {"stop": "12:15"}})
    assert answer.status_code == 200
    time.go(10)
    assert time.desired() == "running"
    assert answer.json()["timer"]["stops_at"] == "2026-11-17T12:15:00Z"


def test_a_start_that_cannot_be_is_told_once_and_made_up_for(
    clock: Callable[..., Clock], scene: Scene
) -> None:
    Host.objects.filter(pk=scene.host.pk).update(gpus=[{"id": "GPU-a", "name": "x", "index": 0}])
    holder = scene.create(name="holder", gpus={"count": 1})
    time = clock(schedule={"start": "12:05"}, desired_state="stopped", gpus={"count": 1})
    time.go(20)
    assert time.desired() == "stopped"
    assert kinds(time.workspace) == [("start_refused", "schedule")]
    assert "held by the workspace holder" in Event.objects.get(kind="start_refused").cause
    holder.delete()
    time.go(1)
    assert time.desired() == "running"


def test_two_beats_at_once_do_everything_once(clock: Callable[..., Clock]) -> None:
    time = clock(idle_stop_minutes=10)
    time.go(8)
    assert not timers_run(time.now)
    time.now += timedelta(minutes=1)
    RollupMark.objects.filter(family="timers").update(until=0)
    assert timers_run(time.now)
    RollupMark.objects.filter(family="timers").update(until=0)
    assert timers_run(time.now)
    assert [kind for kind, _ in kinds(time.workspace)].count("stop_warning") <= 1


def test_an_extension_in_the_last_moment_wins(
    clock: Callable[..., Clock], scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the lock somebody presses the button."""
    time = clock(idle_stop_minutes=10)
    time.go(9)
    seam = "workspaces.timers.watch.workspace_lock"

    def lock(workspace: Workspace, *, expected_revision: int | None) -> Workspace:
        monkeypatch.setattr(seam, workspace_lock)
        workspace_extend(actor=scene.owner, workspace=workspace, data={})
        return workspace_lock(workspace, expected_revision=expected_revision)

    monkeypatch.setattr(seam, lock)
    time.go(5)
    assert time.desired() == "running"
