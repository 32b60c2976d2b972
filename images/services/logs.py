"""Build output by byte offset: appended once however often it is sent, its middle trimmed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from hosts.services.observed import reported_id
from images.choices import TERMINAL_BUILD_STATUSES
from images.models import Build, BuildLogChunk
from trailer import events
from trailer.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from hosts.models import Host

HEAD_LIMIT: Final = 1024 * 1024
TAIL_LIMIT: Final = 4 * 1024 * 1024
CHUNK_LIMIT: Final = 64 * 1024
# An agent that died over the last lines never sends them: a log is not waited for longer.
LATE_LIMIT: Final = timedelta(minutes=5)
_MOST_ROWS: Final = 256


def build_log_append(host: Host, build_id: UUID | str, offset: int, data: bytes) -> int:
    """Store bytes [offset, offset + len(data)); answers how many are held, to continue from.

    An answer below `offset` means that bytes before it are missing and nothing was stored.
    """
    with transaction.atomic():
        build = (
            Build.objects.select_for_update(of=("self",))
            .filter(pk=reported_id(str(build_id)), image__host=host)
            .first()
        )
        if build is None:
            raise NotFound("There is no such build on this host.")
        held = build.log_bytes
        fresh = data[held - offset :] if 0 <= offset <= held else b""
        if not fresh:
            return held
        size = held + len(fresh)
        BuildLogChunk.objects.bulk_create(
            BuildLogChunk(build=build, offset=start, data=part)
            for start, part in _parts(held, fresh)
        )
        Build.objects.filter(pk=build.pk).update(log_bytes=size)
        _trim(build, size)
        events.publish("build", build.pk)
        if _is_whole(build):
            # Readers that were told the log is complete hear that there is more.
            events.publish("image", build.image_id)
    return size


def build_log_read(
    build: Build, offset: int = 0, *, limit: int | None = None
) -> tuple[bytes, int, bool]:
    """Output from `offset` on, the offset to continue from, and whether that was the end.

    Offsets count the bytes the build wrote; where its middle was trimmed, a line says so.
    """
    current = Build.objects.only("status", "log_bytes", "log_expected", "finished_at").get(
        pk=build.pk
    )
    position = min(max(offset, 0), current.log_bytes)
    end = current.log_bytes
    found: list[bytes] = []
    room = limit
    for start, data in _stored(build, position, end):
        if start > position:
            found.append(_gap(start - position))
            position = start
        part = data[position - start :]
        if room is not None:
            part = part[:room]
            room -= len(part)
        found.append(part)
        position += len(part)
        if room == 0:
            break
    over = position >= end and _is_whole(current)
    text = b"".join(found)
    if not over:
        cut = _unfinished(text)
        text, position = text[: len(text) - cut], position - cut
    return text, position, over


def _is_whole(build: Build) -> bool:
    """The build is over and all it wrote is here; its result may overtake its last lines."""
    if build.status not in TERMINAL_BUILD_STATUSES:
        return False
    if build.log_bytes >= (build.log_expected or 0) or build.finished_at is None:
        return True
    return timezone.now() - build.finished_at > LATE_LIMIT


def _parts(start: int, data: bytes) -> list[tuple[int, bytes]]:
    """Pieces small enough to trim finely; none lies across the end of the head."""
    parts = []
    position = 0
    while position < len(data):
        length = CHUNK_LIMIT
        if start + position < HEAD_LIMIT:
            length = min(length, HEAD_LIMIT - start - position)
        parts.append((start + position, data[position : position + length]))
        position += length
    return parts


def _trim(build: Build, size: int) -> None:
    """Keep the head and the tail, to the byte; what lies between goes."""
    border = size - TAIL_LIMIT
    between = build.chunks.filter(offset__gte=HEAD_LIMIT, offset__lt=border)
    between.filter(offset__lte=border - CHUNK_LIMIT).delete()
    for chunk in between.order_by("offset"):
        rest = bytes(chunk.data)[border - chunk.offset :]
        if rest:
            BuildLogChunk.objects.filter(pk=chunk.pk).update(offset=border, data=rest)
        else:
            chunk.delete()


def _stored(build: Build, position: int, end: int) -> Iterator[tuple[int, bytes]]:
    """In order, a few at first: a reader who is far behind takes little of it at a time."""
    after, many = position - CHUNK_LIMIT, 2
    while True:
        rows = build.chunks.filter(offset__gt=after, offset__lt=end).order_by("offset")
        found = list(rows.values_list("offset", "data")[:many])
        for offset, data in found:
            if offset + len(data) > position:
                yield offset, bytes(data)
        if len(found) < many:
            return
        after, many = found[-1][0], min(2 * many, _MOST_ROWS)


def _gap(length: int) -> bytes:
    return f"\n[… {length} bytes left out …]\n".encode()


def _unfinished(text: bytes) -> int:
    """How many bytes at the end are the beginning of a character still on its way."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if needed > back else 0
    return 0
