"""Reading the audit: API and page filter by the same rules, and both say how it is sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery

from trailer.audit.models import AuditEntry, AuditSeal

if TYPE_CHECKING:
    from datetime import datetime

# The row that every comparison with the seals leaves.
VERIFY: Final = "audit.verify"


@dataclass(frozen=True)
class Sealed:
    until: datetime | None
    # The last comparison.
    verified: AuditEntry | None


def of_actor(text: str) -> Q:
    """By id or name; a name that nobody has any more is found too."""
    try:
        return Q(actor_id=UUID(text)) | Q(actor_name=text)
    except ValueError:
        return Q(actor_name=text)


def sealed_now() -> Sealed:
    until = AuditSeal.objects.order_by("-number").values_list("until", flat=True).first()
    verified = AuditEntry.objects.filter(action=VERIFY).order_by("-at").first()
    return Sealed(until, verified)


def with_seals(rows: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
    """Seals leave no gap: the first that ends after a row is the one over it."""
    over = AuditSeal.objects.filter(until__gt=OuterRef("at")).order_by("until", "number")
    return rows.annotate(
        seal=Subquery(over.values("number")[:1]), seal_digest=Subquery(over.values("digest")[:1])
    )
