"""Compares the audit with its seals and says in sentences what does not fit."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import DatabaseError

from trailer.audit.chain import COLUMNS, moment_told, row_digest, unpack
from trailer.audit.head import HEAD_FALSE, head_missing, kept_head
from trailer.audit.links import (
    FOREIGN_KEY,
    content_problem,
    false_signature,
    is_seal_signed,
    place_problem,
)
from trailer.audit.models import AuditEntry, AuditSeal, Outcome
from trailer.audit.record import record
from trailer.audit.sealing import rows_between
from trailer.audit.selectors import VERIFY

logger = logging.getLogger(__name__)

# A table that was rewritten whole must not fill the memory with sentences.
_TOLD: Final = 100
_SEALS_AT_ONCE: Final = 10
_ROWS_AT_ONCE: Final = 500


@dataclass
class Verified:
    rows: int = 0
    unsealed: int = 0
    last: AuditSeal | None = None
    problems: list[str] = field(default_factory=list)
    untold: int = 0
    # Seals of keys that are gone, until one of a present key stands on them; after that every
    # seal has a present key.
    unvouched: list[int] = field(default_factory=list)
    is_vouched: bool = False

    def tell(self, problem: str) -> None:
        if len(self.problems) < _TOLD:
            self.problems.append(problem)
        else:
            self.untold += 1


def audit_verify(head: str = "") -> Verified:
    """Everything, with at most one seal's rows in memory. `head`: a seal that was written down
    elsewhere, as number:digest, and has to be there; so has the one in the data folder."""
    found = Verified()
    kept = kept_head()
    if kept is not None and kept.is_false:
        found.tell(HEAD_FALSE)
        kept = None
    wanted = {head, kept.text if kept else ""} - {""}
    for seal in AuditSeal.objects.order_by("number").iterator(chunk_size=_SEALS_AT_ONCE):
        _check(found, seal)
        wanted.discard(seal.head)
        seal.rows = b""
        found.last = seal
    if found.unvouched:
        found.tell(
            f"Seals {found.unvouched[0]} to {found.unvouched[-1]} are signed with a key that this "
            "server does not have, and no later one vouches for them. Restore TRAILER_SECRET_KEYS."
        )
    for text in sorted(wanted):
        found.tell(head_missing(text))
    rows = AuditEntry.objects.all()
    found.unsealed = (rows.filter(at__gte=found.last.until) if found.last else rows).count()
    return found


def verify_and_record(head: str = "") -> Verified:
    try:
        found = audit_verify(head)
    except Exception as error:
        tell_once(f"The audit could not be compared with its seals: {type(error).__name__}.")
        raise
    changes = [_told_problems(found.problems)] if found.problems else []
    record(VERIFY, changes=changes, outcome=Outcome.FAILED if changes else Outcome.DONE)
    if found.problems:
        logger.error(
            "audit is not as it was sealed",
            extra={"problems": found.problems[:5], "more": len(found.problems) + found.untold},
        )
    return found


def tell_once(problem: str) -> None:
    """As a comparison that failed; what its newest row says already is not said again."""
    newest = AuditEntry.objects.filter(action=VERIFY).order_by("-at").first()
    if newest is not None and any(
        problem in (change.get("to") or ()) for change in newest.changes
    ):
        return
    record(VERIFY, changes=[_told_problems([problem])], outcome=Outcome.FAILED)
    logger.error("audit is not sealed or compared", extra={"problem": problem})


def _told_problems(problems: list[str]) -> dict[str, Any]:
    return {"field": "problems", "from": None, "to": problems}


def _check(found: Verified, seal: AuditSeal) -> None:
    """Whatever somebody wrote there, it is a problem of this seal and not the end of the look."""
    try:
        _check_link(found, seal)
        if seal.format in COLUMNS:
            _check_rows(found, seal)
    except DatabaseError:
        raise
    except Exception as error:
        logger.exception("seal not compared", extra={"seal": seal.number})
        found.tell(f"Seal {seal.number} could not be compared: {type(error).__name__}.")


def _check_link(found: Verified, seal: AuditSeal) -> None:
    for problem in (place_problem(seal, found.last), content_problem(seal)):
        if problem:
            found.tell(problem)
    match is_seal_signed(seal):
        case True:
            found.is_vouched = True
            found.unvouched.clear()
        case False:
            found.tell(false_signature(seal))
        case None if found.is_vouched:
            found.tell(f"Seal {seal.number} is signed with {FOREIGN_KEY}")
        case None:
            # Two are enough to name them all, however many there are.
            found.unvouched[1:] = [seal.number]


def _check_rows(found: Verified, seal: AuditSeal) -> None:
    sealed = dict(unpack(bytes(seal.rows)))
    for row in rows_between(seal.since, seal.until).iterator(chunk_size=_ROWS_AT_ONCE):
        digest = sealed.pop(row.id, None)
        found.rows += 1
        if digest is None:
            found.tell(f"{_named(row)} was added later: seal {seal.number} does not know it.")
        elif digest != row_digest(row, seal.format):
            found.tell(f"{_named(row)} was changed after it was sealed (seal {seal.number}).")
    for missing in sealed:
        found.tell(
            f"Row {missing} is missing from {moment_told(seal.until)} (seal {seal.number})."
        )


def _named(row: AuditEntry) -> str:
    return f"Row {row.id} ({row}, {moment_told(row.at)})"
