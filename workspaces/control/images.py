"""The agent's image for hosts that get it from this server: which there are, and their bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from agent.protocol.session import AgentImage, AgentImages
from hosts.agent_images.store import agent_archive, agent_archives
from hosts.authentication import AgentRefused, bearer_key, host_for_bearer
from hosts.services.enrolment import enrolment_is_open
from trailer.context import client_address
from trailer.errors import NotFound
from trailer.threads import streamable
from workspaces.control.throttle import enrolment_throttle
from workspaces.control.views import answering_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

_CHUNK: Final = 256 * 1024
# What a download that broke off asks for; anything else is answered whole.
_FROM: Final = re.compile(r"bytes=(\d{1,15})-")


@answering_errors
@require_GET
def listing(request: HttpRequest) -> HttpResponse:
    _require_reader(request)
    images = tuple(
        AgentImage(
            image=each.image,
            architecture=each.architecture,
            digest=each.digest,
            size=each.size,
            config=each.config,
        )
        for each in agent_archives()
    )
    body = msgspec.json.encode(AgentImages(images=images))
    return HttpResponse(body, content_type="application/json")


@answering_errors
@require_GET
def archive(request: HttpRequest, digest: str) -> StreamingHttpResponse:
    """The whole archive, or all from an offset on: its content never changes under its digest."""
    _require_reader(request)
    found = agent_archive(digest)
    start = _start(request, found.size, digest)
    headers = {
        "ETag": f'"{digest}"',
        "Accept-Ranges": "bytes",
        "Content-Length": str(found.size - start),
        "Cache-Control": "private, no-transform",
    }
    if start:
        headers["Content-Range"] = f"bytes {start}-{found.size - 1}/{found.size}"
    return StreamingHttpResponse(
        streamable(request, _pieces(_opened(found.path), start)),
        status=206 if start else 200,
        content_type="application/gzip",
        headers=headers,
    )


def _require_reader(request: HttpRequest) -> None:
    """A host that is being enrolled, or one's agent. Guesses are counted as those at enrolment."""
    authorization = request.headers.get("Authorization", "")
    if enrolment_is_open(bearer_key(authorization)):
        return
    try:
        host_for_bearer(authorization)
    except AgentRefused:
        enrolment_throttle(client_address(request.META))
        raise


def _start(request: HttpRequest, size: int, digest: str) -> int:
    wanted = _FROM.fullmatch(request.headers.get("Range", "").strip())
    same = request.headers.get("If-Range", f'"{digest}"') == f'"{digest}"'
    start = int(wanted[1]) if wanted and same else 0
    return start if start < size else 0


def _opened(path: Path) -> IO[bytes]:
    """Before the answer begins: one that was replaced just now is a 404 and no broken download."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotFound("This agent image was replaced by a newer one just now.") from None


def _pieces(file: IO[bytes], start: int) -> Iterator[bytes]:
    with file:
        file.seek(start)
        while piece := file.read(_CHUNK):
            yield piece
