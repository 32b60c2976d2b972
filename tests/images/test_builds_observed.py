"""Ingest of what agents report about builds and images."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agent.protocol.report import BuildStatus, ImageObserved
from images.models import Build, Image
from images.services.images import image_cancel
from images.services.observed import build_observed, image_observed
from tests.factories import make_build, make_host, make_image
from trailer.errors import Invalid

TERMINAL = ("finished", "failed", "cancelled")


def _report(build: Build, status: str, seq: int = 1, **fields: Any) -> BuildStatus:
    return BuildStatus(
        seq=seq, image_id=str(build.image_id), build_id=str(build.pk), status=status, **fields
    )


def _fresh() -> Build:
    return make_image(status="pending").builds.get()


@pytest.mark.django_db
class TestBuilds:
    def test_progress_is_shown_by_build_and_image(self) -> None:
        build = _fresh()
        report = _report(build, "building", progress=40, message="Step 2/5")
        assert build_observed(build.image.host, report, epoch=1)
        for row in (Build.objects.get(), Image.objects.get()):
            assert (row.status, row.progress, row.message) == ("building", 40, "Step 2/5")
        assert Build.objects.get().started_at is not None

    def test_the_result_lands_on_build_and_image_and_in_the_document(self) -> None:
        build = _fresh()
        host = build.image.host
        before = host.desired_version
        report = _report(build, "finished", engine_id="sha256:1", digest="sha256:2", size_bytes=7)
        assert build_observed(host, report, epoch=1)
        for row in (Build.objects.get(), Image.objects.get()):
            assert (row.status, row.engine_id, row.digest) == ("finished", "sha256:1", "sha256:2")
            assert row.size_bytes == 7
        assert Build.objects.get().finished_at is not None
        host.refresh_from_db()
        assert host.desired_version == before + 1

    def test_progress_alone_changes_no_document(self) -> None:
        build = _fresh()
        host = build.image.host
        before = host.desired_version
        build_observed(host, _report(build, "building"), epoch=1)
        host.refresh_from_db()
        assert host.desired_version == before

    def test_a_failed_build_keeps_the_last_good_image(self) -> None:
        image = make_image(engine_id="sha256:old")
        build = make_build(image)
        report = _report(build, "failed", message="exit code 1", engine_id="sha256:x")
        build_observed(image.host, report, epoch=1)
        image.refresh_from_db()
        assert (image.status, image.message) == ("failed", "exit code 1")
        assert image.engine_id == "sha256:old"

    @pytest.mark.parametrize("status", TERMINAL)
    def test_a_finished_build_never_goes_back(self, status: str) -> None:
        build = make_image(status=status).builds.get()
        for seq, later in enumerate(("building", "pending", "failed", "finished"), start=5):
            assert not build_observed(build.image.host, _report(build, later, seq), epoch=9)
        assert Build.objects.get().status == Image.objects.get().status == status

    def test_an_overtaken_build_does_not_move_the_image(self) -> None:
        image = make_image(status="pending")
        old = image.builds.get()
        make_build(image)
        Build.objects.filter(pk=old.pk).update(status="building")
        build_observed(image.host, _report(old, "cancelled"), epoch=1)
        old.refresh_from_db()
        image.refresh_from_db()
        assert (old.status, image.status) == ("cancelled", "pending")

    def test_the_agent_confirms_a_cancel(self, admin: Any) -> None:
        build = make_image(status="building").builds.get()
        image_cancel(actor=admin, image=build.image)
        build_observed(build.image.host, _report(build, "cancelled"), epoch=1)
        assert Image.objects.get().status == "cancelled"

    def test_another_host_can_not_report_it(self) -> None:
        build = _fresh()
        assert not build_observed(make_host(), _report(build, "finished"), epoch=1)
        assert Build.objects.get().status == "pending"

    def test_another_images_id_does_not_match(self) -> None:
        build = _fresh()
        report = BuildStatus(
            seq=1, image_id=str(uuid.uuid4()), build_id=str(build.pk), status="finished"
        )
        assert not build_observed(build.image.host, report, epoch=1)

    @pytest.mark.parametrize("status", ["done", "", "FINISHED"])
    def test_an_unknown_status_is_refused(self, status: str) -> None:
        build = _fresh()
        with pytest.raises(Invalid):
            build_observed(build.image.host, _report(build, status), epoch=1)

    def test_values_no_column_takes_are_made_storable(self) -> None:
        build = _fresh()
        report = _report(
            build, "finished", progress=900, message="\0" + "x" * 9000, size_bytes=2**90
        )
        assert build_observed(build.image.host, report, epoch=1)
        stored = Build.objects.get()
        assert (stored.progress, len(stored.message)) == (100, 4096)


class TestOrder(TestCase):
    @settings(max_examples=60, deadline=None)
    @given(
        steps=st.lists(st.integers(0, 100), min_size=0, max_size=6),
        end=st.sampled_from([*TERMINAL, None]),
        random=st.randoms(),
    )
    def test_however_reports_arrive_the_end_is_the_same(
        self, steps: list[int], end: str | None, random: Any
    ) -> None:
        build = _fresh()
        reports = [
            _report(build, "building", seq, progress=value) for seq, value in enumerate(steps, 1)
        ]
        if end is not None:
            reports.append(_report(build, end, len(steps) + 1, engine_id="sha256:e"))
        arrivals = reports + random.choices(reports, k=len(reports)) if reports else []
        random.shuffle(arrivals)
        for report in arrivals:
            build_observed(build.image.host, report, epoch=1)
        build.refresh_from_db()
        image = Image.objects.get(pk=build.image_id)
        expected = end or ("building" if steps else "pending")
        assert build.status == image.status == expected
        if end is None and steps:
            assert build.progress == image.progress == steps[-1]
        assert (image.engine_id == "sha256:e") == (end == "finished")

    def test_a_terminal_status_is_taken_after_a_newer_progress(self) -> None:
        """It is sent only once; losing it would leave the image building for ever."""
        build = _fresh()
        host = build.image.host
        build_observed(host, _report(build, "building", seq=5), epoch=1)
        assert build_observed(host, _report(build, "finished", seq=4), epoch=1)
        assert Build.objects.get(pk=build.pk).status == "finished"


def _seen(image: Image, seq: int = 1, **fields: Any) -> ImageObserved:
    defaults: dict[str, Any] = {"present": True, "engine_id": image.engine_id}
    return ImageObserved(seq=seq, image_id=str(image.pk), **(defaults | fields))


@pytest.mark.django_db
class TestImages:
    def test_an_image_that_vanished_is_made_again(self) -> None:
        image = make_image()
        assert image_observed(image.host, _seen(image, present=False, engine_id=""), epoch=1)
        image.refresh_from_db()
        newest = image.builds.first()
        assert newest is not None
        assert (image.status, newest.number, newest.trigger) == ("pending", 2, "missing")

    @pytest.mark.parametrize(
        "fields",
        [{"status": "failed"}, {"status": "pending"}, {"enabled": False}, {"kind": "snapshot"}],
    )
    def test_only_what_was_finished_and_can_be_made_is_made_again(
        self, fields: dict[str, Any]
    ) -> None:
        image = make_image(**fields)
        image_observed(image.host, _seen(image, present=False), epoch=1)
        assert image.builds.count() == 1

    def test_a_vanished_snapshot_says_so(self) -> None:
        image = make_image(kind="snapshot")
        image_observed(image.host, _seen(image, present=False), epoch=1)
        image.refresh_from_db()
        assert "no longer on its host" in image.message

    def test_a_newer_digest_is_pulled_once_when_the_policy_says_so(self) -> None:
        image = make_image(update_policy="always", digest="sha256:old")
        report = _seen(image, digest="sha256:old", available_digest="sha256:new")
        image_observed(image.host, report, epoch=1)
        assert image.builds.count() == 2
        Image.objects.update(status="finished")
        again = _seen(image, 2, digest="sha256:old", available_digest="sha256:new")
        image_observed(image.host, again, epoch=1)
        assert image.builds.count() == 2

    def test_a_newer_digest_is_only_shown_otherwise(self) -> None:
        image = make_image(update_policy="if_missing", digest="sha256:old")
        report = _seen(image, digest="sha256:old", available_digest="sha256:new")
        image_observed(image.host, report, epoch=1)
        image.refresh_from_db()
        assert (image.available_digest, image.builds.count()) == ("sha256:new", 1)

    def test_the_same_digest_spelt_with_its_name_is_no_news(self) -> None:
        image = make_image(update_policy="always", digest="busybox@sha256:a")
        report = _seen(image, digest="busybox@sha256:a", available_digest="sha256:a")
        image_observed(image.host, report, epoch=1)
        assert image.builds.count() == 1

    def test_an_older_report_is_dropped(self) -> None:
        image = make_image()
        assert image_observed(image.host, _seen(image, seq=5), epoch=2)
        assert not image_observed(image.host, _seen(image, seq=4, present=False), epoch=2)
        assert not image_observed(image.host, _seen(image, seq=9, present=False), epoch=1)
        assert image.builds.count() == 1

    def test_another_host_can_not_report_it(self) -> None:
        image = make_image()
        assert not image_observed(make_host(), _seen(image, present=False), epoch=1)
