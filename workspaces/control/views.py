"""The agents' endpoints: parse, take the host from the token, call one service, answer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from agent.protocol.report import Report
from agent.protocol.session import (
    EnrolReply,
    EnrolRequest,
    Heartbeat,
    HeartbeatReply,
    SessionReply,
    SessionRequest,
    TokenReply,
    TokenRequest,
)
from hosts.authentication import (
    agent_for_bearer,
    bearer_key,
    epoch_of,
    host_for_bearer,
    require_epoch,
)
from hosts.selectors import holds_newest_document, host_key, host_settings
from hosts.services.enrolment import enrolment_redeem
from hosts.services.sessions import host_session_open, next_beat
from hosts.services.tokens import agent_token_is_due, agent_token_issue
from images.services.logs import build_log_append
from trailer.api.exceptions import body as error_body
from trailer.api.exceptions import database_trouble
from trailer.context import client_address
from trailer.errors import ApplicationError, Conflict, Invalid, Throttled
from workspaces.control.compile import document_for
from workspaces.control.ingest import report_ingest
from workspaces.control.throttle import enrolment_throttle
from workspaces.presence import host_heard

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.http.response import HttpResponseBase

    from hosts.models import Host

T = TypeVar("T")
_MAX_BODY = 8 * 1024 * 1024


def answering_errors(
    view: Callable[..., HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """The API's error shape for plain views; agents act on status and code alone."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        request_id = str(request.META.get("TRAILER_REQUEST_ID", ""))
        try:
            return view(request, *args, **kwargs)
        except ApplicationError as error:
            answer = error_body(error.code, error.message, request_id, error.fields)
            if isinstance(error, OffsetConflict):
                answer["offset"] = error.offset
            headers = {}
            if isinstance(error, Throttled):
                headers["Retry-After"] = str(error.retry_after)
            return JsonResponse(answer, status=error.status, headers=headers)
        except OperationalError as error:
            answer = error_body("unavailable", database_trouble(error), request_id)
            return JsonResponse(answer, status=503, headers={"Retry-After": "5"})

    # nosemgrep: form-without-csrf (agents send a token and no cookie)
    return csrf_exempt(wrapped)


class OffsetConflict(Conflict):
    """Bytes are missing before this chunk; the agent goes on from `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"The log holds {offset} bytes; continue from there.", code="offset")
        self.offset = offset


@answering_errors
@require_POST
def enrol(request: HttpRequest) -> HttpResponse:
    enrolment_throttle(client_address(request.META))
    wanted = _decode(request, EnrolRequest)
    own, host = enrolment_redeem(wanted.token)
    return _json(
        EnrolReply(
            token=own,
            host_id=str(host.id),
            host_name=host.name,
            host_key=host_key(host),
        )
    )


@answering_errors
@require_POST
def session(request: HttpRequest) -> HttpResponse:
    host = _host(request)
    epoch = host_session_open(host, _decode(request, SessionRequest))
    return _json(
        SessionReply(
            epoch=epoch, host_id=str(host.id), host_name=host.name, settings=host_settings(host)
        )
    )


@answering_errors
@require_GET
def state(request: HttpRequest) -> HttpResponse:
    key = bearer_key(request.headers.get("Authorization", ""))
    epoch = epoch_of(request.headers)
    known = _known_etag(request.headers.get("If-None-Match", ""))
    if known and holds_newest_document(token=key, epoch=epoch, etag=known):
        return HttpResponse(status=304, headers={"ETag": f'"{known}"'})
    # Whatever was not so, is found out and said by the longer way.
    host = _host(request)
    require_epoch(host, epoch)
    document = document_for(host.id, known)
    if document.body is None:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(document.body, content_type="application/json")
    response.headers["ETag"] = f'"{document.etag}"'
    return response


@answering_errors
@require_GET
def check(request: HttpRequest) -> HttpResponse:
    """The document for whoever holds the token, without a session: a new agent proves itself with
    it while the old one is still at work."""
    document = document_for(_host(request).id, "")
    return HttpResponse(document.body or b"", content_type="application/json")


@answering_errors
@require_POST
def report(request: HttpRequest) -> HttpResponse:
    host = _host(request)
    items = _decode(request, Report)
    require_epoch(host, items.epoch)
    return _json(report_ingest(host, items))


@answering_errors
@require_POST
def heartbeat(request: HttpRequest) -> HttpResponse:
    bearer = agent_for_bearer(request.headers.get("Authorization", ""))
    host = bearer.host
    beat = _decode(request, Heartbeat)
    require_epoch(host, beat.epoch)
    host_heard(host, beat)
    now = timezone.now()
    return _json(
        HeartbeatReply(
            settings=host_settings(host),
            server_time=now.isoformat(),
            next_beat=next_beat(host, now),
            token_due=agent_token_is_due(bearer, now),
        )
    )


@answering_errors
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """A new token for the agent at work, beside the one that it shows here."""
    bearer = agent_for_bearer(request.headers.get("Authorization", ""))
    require_epoch(bearer.host, _decode(request, TokenRequest).epoch)
    return _json(TokenReply(token=agent_token_issue(bearer)))


@answering_errors
@require_POST
def build_log(request: HttpRequest, build_id: UUID) -> HttpResponse:
    host = _host(request)
    require_epoch(host, epoch_of(request.headers))
    text = request.GET.get("offset", "")
    if not text.isdecimal() or len(text) > 18:
        raise Invalid("offset must be a number of bytes.")
    size = build_log_append(host, build_id, offset=int(text), data=_body(request))
    if size < int(text):
        raise OffsetConflict(size)
    return JsonResponse({"offset": size})


def _known_etag(header: str) -> str:
    """Proxies that compress mark the document as a weak one (nginx), or as another (Apache). What
    is no mark of ours is none: PostgreSQL takes not every character for a question."""
    mark = header.strip().removeprefix("W/").strip('"').removesuffix("-gzip")
    return mark if mark.isascii() and mark.isalnum() else ""


def _host(request: HttpRequest) -> Host:
    return host_for_bearer(request.headers.get("Authorization", ""))


def _body(request: HttpRequest) -> bytes:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length) > _MAX_BODY:
        raise Invalid(f"The body may hold at most {_MAX_BODY} bytes. Send it in parts.")
    return request.body


def _decode(request: HttpRequest, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(_body(request), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The message is not a valid {kind.__name__}: {error}") from error


def _json(value: msgspec.Struct) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(value), content_type="application/json")
