"""Checks of what an agent says about a workspace, before it reaches the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agent.protocol.compare import MASK
from agent.protocol.redaction import redacted
from trailer.errors import Invalid
from workspaces.choices import WorkspaceStatus
from workspaces.validation.scalars import MAX_INTEGER, choice, identifier, integer, text

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from agent.protocol import report

_MAX_MESSAGE: Final = 64 * 1024
_MAX_OUTPUT: Final = 4000
_MAX_SIGNAL: Final = 16
_INT32: Final = 2**31 - 1
_FIRST_YEAR: Final = 1970


@dataclass(frozen=True)
class Observation:
    workspace_id: UUID
    revision: int
    columns: dict[str, Any]


@dataclass(frozen=True)
class LedgerEntry:
    workspace_id: UUID
    revision: int | None
    columns: dict[str, Any]


def clean_observation(item: report.WorkspaceStatus, epoch: int) -> Observation:
    _check_order(item.seq, epoch)
    exit_code = item.exit_code
    columns = {
        "observed_status": choice(item.status, "status", WorkspaceStatus.values),
        "message": _shortened(item.message),
        "container_id": text(item.container_id, "container_id", max_length=64),
        "started_at": _moment(item.started_at, "started_at"),
        "restart_count": integer(item.restart_count, "restart_count", least=0, most=_INT32),
        "health": text(item.health, "health", max_length=20),
        "exit_code": exit_code
        if exit_code is None
        else integer(exit_code, "exit_code", least=-_INT32, most=_INT32),
    }
    return Observation(
        workspace_id=identifier(item.workspace_id, "workspace_id"),
        revision=integer(item.revision, "revision", least=0, most=_INT32),
        columns=columns,
    )


def clean_event(item: report.WorkspaceEvent, epoch: int) -> LedgerEntry:
    _check_order(item.seq, epoch)
    kind = text(item.event, "event", max_length=32)
    if not kind:
        raise Invalid.field("event", "The event has no kind.")
    revision = item.revision
    if revision is not None:
        revision = integer(revision, "revision", least=0, most=_INT32)
    columns = {
        "at": _moment(item.at, "at") or timezone.now(),
        "kind": kind,
        "cause": _shortened(item.cause),
        "changes": [_change(change) for change in item.changes],
        "cycle": None if item.cycle is None else integer(item.cycle, "cycle", least=0),
        "revision": revision,
        **_end(item),
    }
    return LedgerEntry(
        workspace_id=identifier(item.workspace_id, "workspace_id"),
        revision=revision,
        columns=columns,
    )


def _end(item: report.WorkspaceEvent) -> dict[str, Any]:
    """How a container ended. Its last words are redacted by the agent already, but stay here."""
    ended = item.exit
    code = None if ended is None else ended.code
    if code is not None:
        integer(code, "exit.code", least=-_INT32, most=_INT32)
    return {
        "exit": ended
        and {
            "code": code,
            "signal": text(ended.signal, "exit.signal", max_length=_MAX_SIGNAL),
            "oom": ended.oom,
        },
        "count": integer(item.count, "count", least=1, most=_INT32),
        "last_at": _moment(item.last_at, "last_at"),
        "health_output": redacted(_shortened(item.health_output)[-_MAX_OUTPUT:]),
        "last_lines": redacted(_shortened(item.last_lines)[-_MAX_OUTPUT:]),
    }


def _check_order(seq: int, epoch: int) -> None:
    integer(seq, "seq", least=0, most=MAX_INTEGER)
    integer(epoch, "epoch", least=0, most=MAX_INTEGER)


def _moment(value: str, path: str) -> datetime | None:
    """The engine writes the year 1 for 'never'."""
    if not value:
        return None
    try:
        moment = parse_datetime(value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Invalid.field(path, f"{path} must be a time such as 2026-01-31T08:00:00Z.")
    return moment if moment.year >= _FIRST_YEAR else None


def _change(change: report.FieldChange) -> dict[str, Any]:
    """Masked by the agent already; again here, since nobody may read a secret off the ledger."""
    built: dict[str, Any] = _storable(msgspec.to_builtins(change))
    if change.field == "secret_env":
        for side in ("from", "to"):
            names = built[side] if isinstance(built[side], dict) else {}
            built[side] = dict.fromkeys(names, MASK)
    return built


def _storable(value: Any) -> Any:
    """PostgreSQL stores no NUL, neither in text nor in JSON."""
    if isinstance(value, str):
        return _shortened(value)
    if isinstance(value, dict):
        return {_shortened(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value


def _shortened(value: str) -> str:
    return value.replace("\0", "")[:_MAX_MESSAGE]
