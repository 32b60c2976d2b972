"""Ingest of reports about networks, volumes, tombstones and cycles."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agent.protocol.report import CycleReport, ResourceStatus, StepReport, TombstoneDone
from hosts.choices import TombstoneKind
from hosts.models import Cycle, Host, Network, Tombstone
from hosts.services.desired import tombstone_create
from hosts.services.observed import (
    KEPT_CYCLES,
    cycle_record,
    network_observed,
    tombstone_done,
    volume_observed,
)
from tests.factories import api_client, make_host, make_network, make_volume
from trailer.errors import Invalid


def _report(row: Any, resource: str = "network", **fields: Any) -> ResourceStatus:
    defaults: dict[str, Any] = {"seq": 1, "status": "created"}
    return ResourceStatus(resource=resource, object_id=str(row.pk), **(defaults | fields))


@pytest.mark.django_db
class TestResources:
    def test_a_report_sets_the_observed_columns_only(self) -> None:
        network = make_network()
        assert network_observed(network.host, _report(network, engine_id="abc"), epoch=1)
        stored = Network.objects.get()
        assert (stored.status, stored.engine_id) == ("created", "abc")
        assert stored.observed_at is not None
        assert (stored.revision, stored.updated_at) == (network.revision, network.updated_at)

    def test_a_volume_tells_its_error(self) -> None:
        volume = make_volume()
        report = _report(volume, "volume", status="error", message="No space left.")
        assert volume_observed(volume.host, report, epoch=1)
        volume.refresh_from_db()
        assert (volume.status, volume.message) == ("error", "No space left.")

    def test_a_report_of_another_host_is_dropped(self) -> None:
        network = make_network()
        assert not network_observed(make_host(), _report(network), epoch=9)
        network.refresh_from_db()
        assert network.status == "pending"

    def test_a_report_about_what_is_gone_is_dropped(self, host: Host) -> None:
        report = ResourceStatus(
            seq=1, resource="network", object_id=str(uuid.uuid4()), status="created"
        )
        assert not network_observed(host, report, epoch=1)

    @pytest.mark.parametrize("fields", [{"status": "exploded"}, {"status": "running\0"}])
    def test_an_unknown_status_is_refused(self, fields: dict[str, Any]) -> None:
        network = make_network()
        with pytest.raises(Invalid):
            network_observed(network.host, _report(network, **fields), epoch=1)

    def test_an_id_that_is_none_is_refused(self, host: Host) -> None:
        report = ResourceStatus(seq=1, resource="network", object_id="7", status="created")
        with pytest.raises(Invalid):
            network_observed(host, report, epoch=1)


class TestOrder(TestCase):
    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(
            st.tuples(st.integers(1, 3), st.integers(1, 5), st.sampled_from(["created", "error"])),
            min_size=1,
            max_size=12,
            unique_by=lambda report: report[:2],
        ),
        st.randoms(),
    )
    def test_the_newest_report_wins_however_they_arrive(
        self, reports: list[tuple[int, int, str]], random: Any
    ) -> None:
        network = make_network()
        arrivals = reports * 2
        random.shuffle(arrivals)
        for epoch, seq, status in arrivals:
            network_observed(network.host, _report(network, seq=seq, status=status), epoch)
        network.refresh_from_db()
        epoch, seq, status = max(reports)
        assert network.status == status
        assert (network.report_epoch, network.report_seq) == (epoch, seq)


@pytest.mark.django_db
class TestTombstones:
    def _make(self, host: Host) -> Tombstone:
        tombstone_create(
            host_id=host.pk, kind=TombstoneKind.VOLUME, object_id=uuid.uuid4(), name="trailer-x"
        )
        return Tombstone.objects.get()

    def test_one_that_is_done_goes_and_the_document_changes(self, host: Host) -> None:
        stone = self._make(host)
        host.refresh_from_db()
        before = host.desired_version
        assert tombstone_done(host, TombstoneDone(seq=1, tombstone_id=str(stone.pk)))
        assert not Tombstone.objects.exists()
        host.refresh_from_db()
        assert host.desired_version == before + 1

    def test_one_that_can_not_be_done_yet_says_why_and_stays(self, host: Host) -> None:
        stone = self._make(host)
        report = TombstoneDone(seq=1, tombstone_id=str(stone.pk), done=False, message="In use.")
        assert tombstone_done(host, report)
        assert Tombstone.objects.get().message == "In use."

    def test_another_host_can_not_answer_it(self, host: Host) -> None:
        stone = self._make(host)
        report = TombstoneDone(seq=1, tombstone_id=str(stone.pk))
        assert not tombstone_done(make_host(), report)
        assert Tombstone.objects.exists()


def _cycle(number: int, **fields: Any) -> CycleReport:
    now = timezone.now().isoformat()
    defaults: dict[str, Any] = {
        "seq": number,
        "trigger": "interval",
        "started_at": now,
        "finished_at": now,
        "outcome": "done",
        "cleanup": "done",
        "engine_calls": 3,
    }
    return CycleReport(number=number, **(defaults | fields))


@pytest.mark.django_db
class TestCycles:
    def test_a_cycle_keeps_its_steps(self, host: Host) -> None:
        step = StepReport(
            step="create",
            resource="workspace",
            name="lab",
            cause="absent",
            outcome="done",
            started_at="2026-01-01T00:00:00Z",
            duration_ms=12,
        )
        assert cycle_record(host, _cycle(1, steps=(step,)), epoch=1)
        assert Cycle.objects.get().steps[0]["cause"] == "absent"

    def test_the_same_cycle_reported_twice_makes_one_row(self, host: Host) -> None:
        assert cycle_record(host, _cycle(1), epoch=1)
        assert not cycle_record(host, _cycle(1, outcome="failed"), epoch=1)
        assert cycle_record(host, _cycle(1), epoch=2)
        assert Cycle.objects.count() == 2

    def test_only_the_newest_are_kept(self, host: Host) -> None:
        other = make_host()
        cycle_record(other, _cycle(1), epoch=1)
        for number in range(1, KEPT_CYCLES + 4):
            cycle_record(host, _cycle(number), epoch=1)
        cycle_record(host, _cycle(1), epoch=2)
        numbers = list(host.cycles.order_by("epoch", "number").values_list("number", flat=True))
        assert len(numbers) == KEPT_CYCLES
        assert (numbers[0], numbers[-2:]) == (5, [KEPT_CYCLES + 3, 1])
        assert other.cycles.count() == 1

    def test_a_clock_that_makes_no_sense_costs_no_report(self, host: Host) -> None:
        assert cycle_record(host, _cycle(1, started_at="yesterday", trigger="x" * 500), epoch=1)
        assert Cycle.objects.get().started_at <= timezone.now()

    def test_admins_read_cycles_newest_first(self, host: Host, admin: Any) -> None:
        for number in (1, 2, 3):
            cycle_record(host, _cycle(number), epoch=1)
        body = api_client(admin).get(f"/api/v1/hosts/{host.pk}/cycles/?page_size=2").json()
        assert body["count"] == 3
        assert [row["number"] for row in body["results"]] == [3, 2]
        assert set(body["results"][0]) >= {"trigger", "outcome", "cleanup", "engine_calls"}
