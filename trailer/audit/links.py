"""What can be wrong with one seal, in sentences: the sealer asks before it builds on the last one,
the comparison asks of each.
"""

from __future__ import annotations

from typing import Final

from trailer.audit.chain import COLUMNS, PURPOSE, moment_told, seal_digest
from trailer.audit.models import AuditSeal
from trailer.secrets import is_signed, sign

FOREIGN_KEY: Final = "a key that this server does not have. Restore TRAILER_SECRET_KEYS."


def content_problem(seal: AuditSeal) -> str:
    if seal.format not in COLUMNS:
        return f"Seal {seal.number} has the format {seal.format}, which is not known here."
    if seal_digest(seal) != seal.digest:
        return f"Seal {seal.number} (up to {moment_told(seal.until)}) was changed."
    return ""


def is_seal_signed(seal: AuditSeal) -> bool | None:
    """None: with a key that this server does not have."""
    return is_signed(seal.digest.encode(), PURPOSE, seal.key, seal.signature)


def false_signature(seal: AuditSeal) -> str:
    return f"Seal {seal.number} has a false signature: it was not made by Trailer."


def place_problem(seal: AuditSeal, last: AuditSeal | None) -> str:
    """Numbers, digests and times follow one another; a gap in time could hide rows."""
    following = last.number + 1 if last else 1
    if seal.number != following:
        return f"Of the seals, {following} to {seal.number - 1} are missing."
    if seal.previous != (last.digest if last else ""):
        return f"Seal {seal.number} does not follow the one before: that was changed."
    if seal.since != (last.until if last else None):
        return f"Seal {seal.number} does not begin where the one before ends: that was moved."
    return ""


def reason_not_to_follow(last: AuditSeal) -> str:
    """A signature on top of a seal vouches for it and for all before: empty when that is true."""
    problem = content_problem(last)
    if problem:
        return problem
    signed = is_seal_signed(last)
    if signed is None:
        return f"Seal {last.number} is signed with {FOREIGN_KEY}"
    if not signed:
        return false_signature(last)
    # Keys only follow one another: a seal of an older one in between would be left without a
    # key when that is thrown away.
    first, _ = sign(b"", PURPOSE)
    if last.key != first and AuditSeal.objects.filter(key=first).exists():
        return (
            "The first of TRAILER_SECRET_KEYS was replaced by another key before. Put the newest "
            "in front, or make a new one."
        )
    return ""
