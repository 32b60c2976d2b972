"""Rows of the ledger joined to entries: what was asked for with what became of it. Pure.

A user's row and the agent's rows of the same revision are one act. Rows that older versions wrote
are joined in the same way, so nothing about an entry is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workspaces.story.rows import (
    AGENT,
    ASKED,
    CRASHED,
    DONE,
    ENDS,
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
    Subject,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Of these each has a revision of its own.
_ACTS: Final = frozenset(
    {
        *("created", "cloned", "changed", "start_requested", "stop_requested"),
        *("redeploy_requested", "rolled_back", "evicted"),
    }
)
_BY_NAMES: Final = {"schedule": SCHEDULE, "idle": SCHEDULE, "engine": ENGINE, "stack": STACK}
_OF_A_STACK: Final = frozenset({"created", "changed"})
_SETTLED: Final = frozenset({"running", "stopped", "snapshotting"})
_SNAPSHOTS: Final = {"finished": DONE, "failed": FAILED, "cancelled": FAILED}
# What is older than this when it arrives was held up on its way.
_HELD_UP: Final = timedelta(seconds=10)
_SAME_MOMENT: Final = timedelta(seconds=5)
# The agent started the old container again, which is no success.
_WENT_BACK: Final = "the replacement did not come up"
_FAILURES: Final = frozenset({ERROR, HEAL})
_DRIFT: Final = "outside Trailer"


@dataclass
class _Act:
    """What was asked for, and what the agent said about it so far."""

    row: Row
    ends: list[Row] = field(default_factory=list)

    @property
    def is_settled(self) -> bool:
        return bool(self.ends) and self.ends[-1].kind not in _FAILURES

    def is_nothing(self) -> bool:
        """Whether it changed nothing that the host knows."""
        changes = self.row.changes
        return self.row.kind == "changed" and bool(changes) and not _fields(self.row)

    def takes(self, row: Row, open_fields: set[str]) -> bool:
        if self.is_settled:
            # A rename and the networks of one edit; a later cycle does something else.
            return row.cycle is not None and row.cycle == self.ends[-1].cycle
        if self.is_nothing() and not open_fields:
            return False
        if self.row.kind != "changed" or row.kind != REPLACE or not row.changes:
            return True
        mine = _fields(self.row) | open_fields
        return not mine or bool(mine & {str(change.get("field")) for change in row.changes})


def story_of(rows: Iterable[Row], subject: Subject) -> list[Entry]:
    """Newest first. `rows` come oldest first; one whose act is not among them stands alone."""
    acts: dict[int, _Act] = {}
    told: list[Row | _Act] = []
    for row in rows:
        if row.revision is not None and row.kind in _ACTS and not row.reported:
            act = _Act(row)
            # An eviction of a stopped workspace leaves the revision to the act that made it.
            if row.kind != "evicted" or row.revision not in acts:
                acts[row.revision] = act
            told.append(act)
            continue
        found = _act_of(row, acts)
        if found is None:
            told.append(row)
        else:
            found.ends.append(row)
    entries: list[Entry] = []
    later: Entry | None = None
    for item in reversed(told):
        if isinstance(item, Row):
            entries.append(_alone(item, subject))
            continue
        entry = _ended(item, subject, later)
        entries.append(entry)
        if acts.get(item.row.revision or 0) is item:
            later = entry
    return entries


def explaining(entries: Sequence[Entry]) -> Entry | None:
    """Of entries newest first, the one that says why the workspace is as it is."""
    return next((entry for entry in entries if entry.kind not in _SAYS_NOTHING), None)


# These leave the status as it is.
_SAYS_NOTHING: Final = frozenset(
    {SNAPSHOT, "transferred", "extended", "stop_warning", "start_refused", "data_lost"}
)


def _act_of(row: Row, acts: dict[int, _Act]) -> _Act | None:
    went_back = row.kind == HEAL and row.cause.startswith(_WENT_BACK)
    if not row.reported or row.revision is None or not (went_back or row.kind in ENDS):
        return None
    act = acts.get(row.revision)
    if act is None:
        return None
    open_fields: set[str] = set()
    for number in range(row.revision - 1, 0, -1):
        before = acts.get(number)
        if before is None or before.ends:
            break
        open_fields |= _fields(before.row)
    return act if act.takes(row, open_fields) else None


def _fields(row: Row) -> set[str]:
    """Those whose change the host has to follow."""
    changes = (change for change in row.changes if change.get("effect") != "none")
    return {str(change.get("field")) for change in changes}


def _alone(row: Row, subject: Subject) -> Entry:
    outcome, problem = DONE, ""
    if row.kind in (ERROR, "start_refused"):
        outcome, problem = FAILED, row.cause
    elif row.kind == SNAPSHOT:
        outcome = _snapshot(row, subject)
    drift = is_drift(row)
    by = By(ENGINE) if drift else _by(row, subject)
    return Entry(row=row, by=by, outcome=outcome, problem=problem, is_drift=drift)


def is_drift(row: Row) -> bool:
    """Something past Trailer changed the container, and this put it right."""
    return row.reported and _DRIFT in row.cause


def _snapshot(row: Row, subject: Subject) -> str:
    for at, status in subject.snapshots:
        if abs(at - row.at) <= _SAME_MOMENT:
            return _SNAPSHOTS.get(status, ASKED)
    # Deleted since.
    return DONE


def _ended(act: _Act, subject: Subject, later: Entry | None) -> Entry:
    row = act.row
    parts = tuple(dict.fromkeys(end.kind for end in act.ends if end.kind not in _FAILURES))
    entry = Entry(row=row, by=_by(row, subject), outcome=ASKED, parts=parts)
    if act.ends:
        last = act.ends[-1]
        failed = last.kind in _FAILURES
        return replace(
            entry,
            outcome=FAILED if failed else DONE,
            problem=last.cause if failed else "",
            duration_ms=_milliseconds(row, last),
        )
    if act.is_nothing() or row.revision is None:
        return replace(entry, outcome=DONE)
    if later is not None and (later.row.revision or 0) > row.revision:
        return _overtaken(entry, later)
    return _as_observed(entry, row.revision, subject)


def _overtaken(entry: Entry, later: Entry) -> Entry:
    """Done with the change that came before the host got to it."""
    took = None
    if later.duration_ms is not None:
        waited = later.row.received_at - entry.row.received_at
        took = later.duration_ms + max(0, round(waited / timedelta(milliseconds=1)))
    return replace(
        entry,
        outcome=later.outcome,
        parts=later.parts,
        problem=later.problem,
        duration_ms=took,
        together=True,
    )


def _as_observed(entry: Entry, revision: int, subject: Subject) -> Entry:
    """The agent wrote nothing about the newest act: its status says how it went."""
    if subject.observed_revision < revision:
        return entry
    if subject.status in _SETTLED:
        return replace(entry, outcome=DONE)
    if subject.status == ERROR:
        return replace(entry, outcome=FAILED, problem=subject.message)
    return entry


def _by(row: Row, subject: Subject) -> By:
    if row.kind in (CRASHED, RESTARTED) or (row.reported and row.kind == HEAL):
        return By(ENGINE)
    if row.name in _BY_NAMES:
        named = subject.stack if row.name == STACK else row.name
        return By(_BY_NAMES[row.name], "" if named == ENGINE else named)
    if row.reported:
        return By(AGENT)
    if subject.stack and row.kind in _OF_A_STACK:
        return By(STACK, subject.stack)
    return By(USER, row.user) if row.user else By(AGENT, row.name)


def _milliseconds(asked: Row, ended: Row) -> int:
    """By this server's clock; by the agent's for a report that was held up on its way."""
    took = ended.received_at - asked.received_at
    if ended.received_at - ended.at > _HELD_UP:
        by_agent: timedelta = ended.at - asked.at
        took = by_agent if timedelta(0) <= by_agent <= took else took
    return max(0, round(took / timedelta(milliseconds=1)))
