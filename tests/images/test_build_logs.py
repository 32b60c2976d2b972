"""Build output by byte offset: sent twice it is stored once, and its middle is trimmed."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from agent.protocol.report import BuildStatus as BuildReport
from images.models import Build, BuildLogChunk
from images.services.logs import (
    CHUNK_LIMIT,
    HEAD_LIMIT,
    LATE_LIMIT,
    TAIL_LIMIT,
    build_log_append,
    build_log_read,
)
from images.services.observed import build_observed
from tests.factories import api_client, make_host, make_image
from trailer import events
from trailer.errors import Invalid, NotFound

if TYPE_CHECKING:
    from trailer.accounts.models import User


def _build(status: str = "building", **fields: Any) -> Build:
    return make_image(status=status, **fields).builds.get()


@pytest.mark.django_db
class TestAppend:
    def test_bytes_are_read_back_as_they_came(self) -> None:
        build = _build()
        host = build.image.host
        assert build_log_append(host, build.pk, 0, b"one\n") == 4
        assert build_log_append(host, build.pk, 4, b"two\n") == 8
        assert build_log_read(build, 0) == (b"one\ntwo\n", 8, False)
        assert build_log_read(build, 4) == (b"two\n", 8, False)
        assert build_log_read(build, 8) == (b"", 8, False)

    def test_what_is_sent_again_is_stored_once(self) -> None:
        build = _build()
        host = build.image.host
        build_log_append(host, build.pk, 0, b"abcdef")
        assert build_log_append(host, build.pk, 0, b"abcdef") == 6
        assert build_log_append(host, build.pk, 3, b"defghi") == 9
        assert build_log_append(host, build.pk, 2, b"cd") == 9
        assert build_log_read(build)[0] == b"abcdefghi"

    def test_an_agent_that_sends_nothing_learns_how_much_there_is(self) -> None:
        build = _build()
        host = build.image.host
        assert build_log_append(host, build.pk, 0, b"") == 0
        build_log_append(host, build.pk, 0, b"abcdef")
        assert build_log_append(host, build.pk, 0, b"") == 6

    def test_bytes_after_a_hole_are_not_stored(self) -> None:
        build = _build()
        assert build_log_append(build.image.host, build.pk, 5, b"late") == 0
        assert not BuildLogChunk.objects.exists()

    def test_another_host_finds_no_such_build(self) -> None:
        build = _build()
        with pytest.raises(NotFound):
            build_log_append(make_host(), build.pk, 0, b"x")
        with pytest.raises(NotFound):
            build_log_append(make_host(), uuid.uuid4(), 0, b"x")
        with pytest.raises(Invalid):
            build_log_append(make_host(), "x", 0, b"x")

    def test_a_long_log_keeps_its_head_and_its_tail_and_marks_the_gap(self) -> None:
        build = _build()
        host = build.image.host
        size = 0
        line = b"0123456789abcde\n" * 16384  # 256 KiB
        for _ in range(32):  # 8 MiB
            size = build_log_append(host, build.pk, size, line)
        assert size == 8 * 1024 * 1024
        stored = sum(len(chunk.data) for chunk in build.chunks.all())
        assert stored == HEAD_LIMIT + TAIL_LIMIT
        text, following, _ = build_log_read(build)
        assert following == size
        gap = size - stored
        marker = f"\n[… {gap} bytes left out …]\n".encode()
        assert text[HEAD_LIMIT : HEAD_LIMIT + len(marker)] == marker
        assert text.endswith(line[-1000:])
        inside, _, _ = build_log_read(build, HEAD_LIMIT + 10, limit=100)
        assert inside.startswith(f"\n[… {gap - 10} bytes".encode())


@pytest.mark.django_db
class TestRead:
    def test_a_read_may_be_limited_and_continued(self) -> None:
        build = _build()
        build_log_append(build.image.host, build.pk, 0, b"abcdefgh")
        assert build_log_read(build, 0, limit=3) == (b"abc", 3, False)
        assert build_log_read(build, 3, limit=3) == (b"def", 6, False)

    def test_a_reader_far_behind_takes_a_little_at_a_time(self) -> None:
        build = _build()
        output = bytes(range(128)) * (10 * CHUNK_LIMIT // 128)
        build_log_append(build.image.host, build.pk, 0, output)
        with CaptureQueriesContext(connection) as asked:
            data, at, _ = build_log_read(build, 3, limit=CHUNK_LIMIT)
        assert (data, at) == (output[3 : CHUNK_LIMIT + 3], CHUNK_LIMIT + 3)
        table = BuildLogChunk._meta.db_table
        [query] = [found["sql"] for found in asked if table in found["sql"]]
        assert query.endswith("LIMIT 2")
        assert build_log_read(build, 0) == (output, len(output), False)

    def test_a_character_still_on_its_way_is_held_back(self) -> None:
        build = _build()
        host = build.image.host
        text = "grün €".encode()
        build_log_append(host, build.pk, 0, text[:-1])
        assert build_log_read(build) == ("grün ".encode(), len(text) - 3, False)
        build_log_append(host, build.pk, len(text) - 1, text[-1:])
        assert build_log_read(build) == (text, len(text), False)

    def test_a_log_is_complete_when_the_build_is_over_and_all_is_read(self) -> None:
        build = _build()
        build_log_append(build.image.host, build.pk, 0, b"abc\xe2")
        Build.objects.update(status="finished")
        assert build_log_read(build, 0, limit=2) == (b"ab", 2, False)
        assert build_log_read(build, 2) == (b"c\xe2", 4, True)
        assert build_log_read(build, 10**15) == (b"", 4, True)


class TestAnyOrder(TestCase):
    @settings(max_examples=50, deadline=None)
    @given(
        output=st.binary(max_size=200),
        sends=st.lists(st.tuples(st.integers(0, 220), st.integers(0, 80)), max_size=20),
    )
    def test_whatever_is_sent_again_or_too_early_the_log_is_a_prefix_of_the_output(
        self, output: bytes, sends: list[tuple[int, int]]
    ) -> None:
        build = _build()
        host = build.image.host
        for offset, length in sends:
            build_log_append(host, build.pk, offset, output[offset : offset + length])
        held = Build.objects.get(pk=build.pk).log_bytes
        size = build_log_append(host, build.pk, held, output[held:])
        assert size == len(output)
        Build.objects.filter(pk=build.pk).update(status="finished")
        assert build_log_read(build) == (output, len(output), True)


@pytest.mark.django_db
class TestLateLines:
    """A result travels its own way, and may overtake the last lines."""

    def _ended(self, expected: int | None) -> Build:
        build = _build()
        build_log_append(build.image.host, build.pk, 0, b"early\n")
        item = BuildReport(
            seq=1,
            image_id=str(build.image_id),
            build_id=str(build.pk),
            status="failed",
            log_bytes=expected,
        )
        assert build_observed(build.image.host, item, 1)
        return build

    def test_a_log_is_complete_only_with_all_its_bytes(self) -> None:
        build = self._ended(11)
        assert build_log_read(build) == (b"early\n", 6, False)
        build_log_append(build.image.host, build.pk, 6, b"late\n")
        assert build_log_read(build) == (b"early\nlate\n", 11, True)

    def test_an_agent_that_never_sends_the_rest_is_not_waited_for_for_ever(self) -> None:
        build = self._ended(11)
        ended_at = timezone.now() - LATE_LIMIT - timedelta(seconds=1)
        Build.objects.filter(pk=build.pk).update(finished_at=ended_at)
        assert build_log_read(build) == (b"early\n", 6, True)

    def test_an_older_agent_that_does_not_say_how_many_is_believed(self) -> None:
        assert build_log_read(self._ended(None)) == (b"early\n", 6, True)

    def test_lines_after_the_end_are_told_to_the_page(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build = self._ended(6)
        told: list[str] = []
        monkeypatch.setattr(events, "publish", lambda kind, pk, **_: told.append(f"{kind}:{pk}"))
        build_log_append(build.image.host, build.pk, 6, b"late\n")
        assert f"image:{build.image_id}" in told

    def test_lines_that_readers_still_wait_for_go_to_them_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build = self._ended(11)
        told: list[str] = []
        monkeypatch.setattr(events, "publish", lambda kind, pk, **_: told.append(f"{kind}:{pk}"))
        build_log_append(build.image.host, build.pk, 6, b"late\n")
        assert told == [f"build:{build.pk}"]


@pytest.mark.django_db
class TestOverRest:
    def test_the_log_is_text_with_the_offset_to_continue_from(self, owner: User) -> None:
        build = _build(owner=owner)
        build_log_append(build.image.host, build.pk, 0, "häuser\n".encode())
        client = api_client(owner)
        answer = client.get(f"/api/v1/builds/{build.pk}/log/?offset=3")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert answer.content.decode() == "user\n"
        assert answer.headers["Trailer-Log-Offset"] == "8"
        assert answer.headers["Trailer-Log-Complete"] == "false"
        Build.objects.update(status="failed")
        answer = client.get(f"/api/v1/builds/{build.pk}/log/")
        assert answer.headers["Trailer-Log-Complete"] == "true"

    def test_asking_for_plain_text_is_fine(self, owner: User) -> None:
        build = _build(owner=owner)
        url = f"/api/v1/builds/{build.pk}/log/"
        answer = api_client(owner).get(url, headers={"Accept": "text/plain"})
        assert answer.status_code == 200

    @pytest.mark.parametrize("offset", ["-1", "x", "1.5", "", "٣", "9" * 19])
    def test_a_malformed_offset_is_refused(self, owner: User, offset: str) -> None:
        build = _build(owner=owner)
        answer = api_client(owner).get(f"/api/v1/builds/{build.pk}/log/?offset={offset}")
        assert answer.status_code == 400
        assert "offset" in answer.json()["fields"]

    def test_a_build_shows_its_state(self, owner: User) -> None:
        build = _build(owner=owner)
        body = api_client(owner).get(f"/api/v1/builds/{build.pk}/").json()
        assert (body["number"], body["status"], body["image"]) == (
            1,
            "building",
            str(build.image_id),
        )
