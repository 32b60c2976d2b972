"""An entry of the story in one sentence. Made when it is read, and never stored. Pure."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from trailer.quantities import rough_duration
from workspaces.story.fields import change_words, label_of
from workspaces.story.rows import (
    AGENT,
    ASKED,
    CRASHED,
    CREATE,
    DONE,
    ENGINE,
    ERROR,
    FAILED,
    HEAL,
    REPLACE,
    RESTARTED,
    SCHEDULE,
    SNAPSHOT,
    STACK,
    USER,
    By,
    Entry,
    Row,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# More changes than this are told by their labels alone.
_MOST_CHANGES: Final = 3
_LONGEST_PROBLEM: Final = 200
_DRIFT: Final = "outside Trailer"
# By what a reader asks first, if the agent did several things for one act.
_RESULTS: Final = {
    CREATE: "the container was created",
    REPLACE: "the container was replaced",
    "start": "the container was started",
    "stop": "the container was stopped",
    "rename": "the container was renamed",
    "connect": "its networks were changed",
    "disconnect": "its networks were changed",
}
_ALONE: Final = {
    CREATE: "The container was created",
    REPLACE: "The container was replaced",
    "start": "The container was started",
    "stop": "The container was stopped",
    "rename": "The container was renamed",
    "remove": "The container was removed",
    "connect": "The container was connected to a network",
    "disconnect": "The container was taken off a network",
    ERROR: "This failed",
}
_VERBS: Final = {
    "created": "created the workspace",
    "start_requested": "started the workspace",
    "stop_requested": "stopped the workspace",
    "redeploy_requested": "asked for a redeploy",
}
_WHO: Final = {"schedule": "the schedule", "idle": "the idle stop"}


def summary_of(entry: Entry, *, inspects: bool = True) -> str:
    """Without the right to inspect the workspace, fields are named and their values are not."""
    row = entry.row
    if row.kind == CRASHED:
        return _crashed(row)
    if row.kind == RESTARTED:
        return _restarted(row)
    if row.kind == HEAL or entry.is_drift:
        return _healed(entry)
    if row.reported:
        return _sentence(f"{_ALONE.get(row.kind, _spaced(row.kind).capitalize())}: {row.cause}")
    act = _act(row, inspects=inspects)
    if act is None:
        told = row.cause.rstrip(".")
        return _sentence(f"{told}, by {who(entry.by)}" if entry.by.type == USER else told)
    return _sentence(f"{who(entry.by)} {act}{_result(entry)}", keep_case=entry.by.type == USER)


def who(by: By) -> str:
    if by.type == USER:
        return by.name
    if by.type == SCHEDULE:
        return _WHO.get(by.name, "the schedule")
    if by.type == STACK:
        return f"stack {by.name}".strip()
    return {AGENT: "Trailer", ENGINE: "the engine"}.get(by.type, "Trailer")


def signal_name(code: int) -> str:
    """Of an exit code made of a signal (128 + its number), such as SIGKILL; else empty."""
    try:
        return signal.Signals(code - 128).name if code > 128 else ""
    except ValueError:
        return ""


def exit_words(ended: Mapping[str, Any]) -> str:
    code, name = ended.get("code"), str(ended.get("signal") or "")
    told = f"with code {code}" if code is not None else "with an unknown code"
    if name:
        told += f" ({name})"
    return f"{told}, out of memory" if ended.get("oom") else told


def _act(row: Row, *, inspects: bool) -> str | None:
    """What was asked for, after the name of who did; None for what its cause says best."""
    if row.kind in _VERBS:
        why = _because(row.cause)
        return f"{_VERBS[row.kind]}{why}"
    if row.kind == "cloned":
        return f"created the workspace as a copy: {_lower(row.cause).rstrip('.')}"
    if row.kind == "rolled_back":
        return _lower(row.cause).rstrip(".")
    if row.kind == SNAPSHOT:
        name = row.cause.removeprefix("Snapshot ").removesuffix(".").removesuffix(" requested")
        return f"asked for the snapshot {name}"
    if row.kind == "changed" and row.changes:
        return _changed(row.changes, inspects=inspects)
    if row.kind == "changed" and row.cause.endswith("tried again."):
        return "tried again"
    return None


def _because(cause: str) -> str:
    """What a schedule or an idle stop gives as its reason."""
    _, found, why = cause.rstrip(".").partition(" because ")
    return f" because {why}" if found else ""


def _changed(changes: Sequence[Mapping[str, Any]], *, inspects: bool) -> str:
    names = list(dict.fromkeys(str(change.get("field", "")) for change in changes))
    if names == ["desired_state"]:
        wanted = changes[0].get("to")
        return "stopped the workspace" if wanted == "stopped" else "started the workspace"
    if not inspects or len(changes) > _MOST_CHANGES:
        return f"changed {_listed([label_of(name) for name in names])}"
    return f"changed {_listed([change_words(dict(change)) for change in changes])}"


def _result(entry: Entry) -> str:
    took = ""
    if entry.duration_ms is not None:
        took = f" in {rough_duration(timedelta(milliseconds=entry.duration_ms))}"
    part = next((_RESULTS[name] for name in _RESULTS if name in entry.parts), "")
    if entry.outcome == FAILED:
        first = entry.problem.strip().partition("\n")[0][:_LONGEST_PROBLEM].rstrip(".")
        return f"; this failed: {first}" if first else "; this failed"
    if entry.outcome == ASKED:
        return "; not done yet"
    if entry.row.kind == SNAPSHOT or (entry.outcome == DONE and not part):
        return ""
    if entry.together:
        return f"; {part} together with a later change"
    return f"; {part}{took}"


def _healed(entry: Entry) -> str:
    row = entry.row
    told = row.cause[:1].upper() + row.cause[1:]
    if not entry.is_drift:
        return _sentence(f"{told}; Trailer put it right")
    did = "the container was replaced" if row.kind == REPLACE else "Trailer put it right"
    return _sentence(f"Drift: {row.cause}; {did}")


def _crashed(row: Row) -> str:
    ended = exit_words(row.exit or {})
    times = "" if row.count == 1 else f" {row.count} times"
    return _sentence(f"The container crashed{times} {ended}")


def _restarted(row: Row) -> str:
    times = "" if row.count == 1 else f" {row.count} times"
    if row.exit is None:
        return _sentence(f"The container was restarted{times}; {row.cause or 'why is not known'}")
    ended = exit_words(row.exit)
    if _DRIFT in row.cause:
        return _sentence(f"The container was {row.cause}{times}; it ended {ended}")
    return _sentence(f"The container ended by itself {ended} and was restarted{times}")


def _listed(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _sentence(text: str, *, keep_case: bool = False) -> str:
    """Names of users stay as they are written."""
    text = text.strip()
    text = text if keep_case else text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
