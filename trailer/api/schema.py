"""Completes the OpenAPI document: every operation may answer with the one error shape."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiParameter

IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The revision you saw; answered with 409 when it has moved.",
)
ERROR_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "Stable word for programs."},
        "message": {"type": "string", "description": "A sentence for people."},
        "fields": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "description": "Sentences by field; nested fields with dots, like ports.0.host_port.",
        },
        "request_id": {"type": "string"},
    },
    "required": ["code", "message", "fields", "request_id"],
}

_ALWAYS: Final = {
    "400": "The input is invalid.",
    "401": "Not signed in.",
    "403": "Signed in, but not allowed.",
    "404": "Not there, or not to be seen by you.",
    "429": "Too many requests; Retry-After says how long to wait.",
    "503": "The database does not answer; try again shortly.",
}
_ON_WRITE: Final = {
    "409": "In conflict with the present state; the message says with what.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
}


def add_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Hook of drf-spectacular, after the document is made."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    for operations in result.get("paths", {}).values():
        for method, operation in operations.items():
            errors = _ALWAYS | (_ON_WRITE if method in {"post", "patch", "put", "delete"} else {})
            for status, description in errors.items():
                operation["responses"].setdefault(status, _error(description))
    return result


def _error(description: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": description, "content": content}
