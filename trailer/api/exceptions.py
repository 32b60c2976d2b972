"""One error shape for the whole API: code, message, fields, request id; never a trace."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, RequestDataTooBig
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import IntegrityError, OperationalError
from django.db.models import ProtectedError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response

from trailer.errors import ApplicationError, Throttled
from trailer.storage import storage

if TYPE_CHECKING:
    from rest_framework.request import Request

logger = logging.getLogger(__name__)


def body(
    code: str, message: str, request_id: str, fields: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    return {"code": code, "message": message, "fields": fields or {}, "request_id": request_id}


def database_trouble(error: OperationalError) -> str:
    """What to answer when the database refuses or is away. A full disk is in the log already."""
    if storage().is_cause_of(error):
        return storage().trouble()
    logger.error("database unavailable", exc_info=error)
    return "The database does not answer. Try again shortly."


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception hook. What is not known here is a bug and stays a logged 500."""
    request: Request = context["request"]
    request_id = str(request.META.get("TRAILER_REQUEST_ID", ""))
    headers: dict[str, str] = {}
    if isinstance(error, ApplicationError):
        status, answer = error.status, body(error.code, error.message, request_id, error.fields)
        answer |= error.extra
        if isinstance(error, Throttled):
            headers["Retry-After"] = str(error.retry_after)
    elif isinstance(error, exceptions.ValidationError):
        status, answer = 400, _invalid(error.detail, request_id)
    elif isinstance(error, DjangoValidationError):
        status, answer = 400, _invalid(error.messages, request_id)
    elif isinstance(error, Http404 | ObjectDoesNotExist):
        status = 404
        answer = body("not_found", "There is no such object, or you may not see it.", request_id)
    elif isinstance(error, RequestDataTooBig):
        status = 413
        answer = body("too_large", "The body is too large. Send less at once.", request_id)
    elif isinstance(error, PermissionDenied):
        status, answer = 403, body("not_allowed", "You may not do this.", request_id)
    elif isinstance(error, ProtectedError):
        users = ", ".join(sorted(str(obj) for obj in error.protected_objects)[:5])
        status = 409
        answer = body(
            "in_use", f"Still in use by {users}. Remove or change that first.", request_id
        )
    elif isinstance(error, IntegrityError):
        # Two requests raced past the same check; the database let one through.
        status = 409
        answer = body(
            "conflict", "Somebody saved the same thing first. Reload and retry.", request_id
        )
    elif isinstance(error, OperationalError):
        status, headers = 503, {"Retry-After": "5"}
        answer = body("unavailable", database_trouble(error), request_id)
    elif isinstance(error, exceptions.APIException):
        status, answer = error.status_code, _api(error, request_id)
        headers = _headers(error)
    else:
        return None
    return Response(answer, status=status, headers=headers)


def page_not_found(request: HttpRequest, exception: Exception) -> JsonResponse:
    request_id = str(request.META.get("TRAILER_REQUEST_ID", ""))
    return JsonResponse(
        body("not_found", "There is nothing at this address.", request_id), status=404
    )


def page_refused(request: HttpRequest, sentence: str) -> JsonResponse:
    """For what never reaches a view: a host name that is not ours, too many fields."""
    request_id = str(request.META.get("TRAILER_REQUEST_ID", ""))
    return JsonResponse(body("invalid", sentence, request_id), status=400)


def page_failed(request: HttpRequest) -> JsonResponse:
    """For a bug: the log has the trace under the same number."""
    request_id = str(request.META.get("TRAILER_REQUEST_ID", ""))
    if full := storage().trouble():
        return JsonResponse(body("unavailable", full, request_id), status=503)
    sentence = "Something went wrong on the server. Tell an administrator the request id."
    return JsonResponse(body("error", sentence, request_id), status=500)


def _api(error: exceptions.APIException, request_id: str) -> dict[str, Any]:
    codes = {400: "invalid", 401: "not_signed_in", 403: "not_allowed", 404: "not_found"}
    codes |= {405: "method_not_allowed", 413: "too_large", 415: "unsupported", 429: "throttled"}
    code = codes.get(error.status_code, "error")
    return body(code, " ".join(_sentences(error.detail)), request_id)


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait) + 1)
    return headers


def _invalid(detail: Any, request_id: str) -> dict[str, Any]:
    if not isinstance(detail, dict):
        return body("invalid", " ".join(_sentences(detail)), request_id)
    fields = dict(_flatten(detail))
    general = fields.pop("non_field_errors", [])
    first = next(iter(fields.items()), None)
    message = " ".join(general) or (f"{first[0]}: {first[1][0]}" if first else "Invalid input.")
    return body("invalid", message, request_id, fields)


def _flatten(detail: dict[str, Any], prefix: str = "") -> list[tuple[str, list[str]]]:
    """Nested serializer errors under dotted names: `ports.0.host_port`."""
    found: list[tuple[str, list[str]]] = []
    for name, value in detail.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        if prefix and name == "non_field_errors":
            path = prefix
        if isinstance(value, dict):
            found.extend(_flatten(value, path))
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            nested = {str(n): item for n, item in enumerate(value) if isinstance(item, dict)}
            found.extend(_flatten({k: v for k, v in nested.items() if v}, path))
        else:
            found.append((path, _sentences(value)))
    return found


def _sentences(detail: Any) -> list[str]:
    if isinstance(detail, dict):
        return [sentence for value in detail.values() for sentence in _sentences(value)]
    if isinstance(detail, list | tuple):
        return [sentence for value in detail for sentence in _sentences(value)]
    return [str(detail)]
