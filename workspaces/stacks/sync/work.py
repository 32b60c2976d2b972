"""What every step of a sync gets: the lease it works under, its rows, its log."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Length
from django.utils import timezone

from trailer import events
from workspaces.stacks.models import Stack, Sync
from workspaces.stacks.sync.lease import hold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workspaces.stacks.choices import Phase, SyncOutcome
    from workspaces.stacks.sync.lease import Lease

_LOG_LIMIT: Final = 256 * 1024
_LINE_LIMIT: Final = 2000


class SyncProblem(Exception):
    """Why a sync can't go on, as a sentence. `retry`: it may be better in a moment."""

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.retry = retry


@dataclass(frozen=True)
class Go:
    """On to this phase, at once."""

    phase: Phase


@dataclass(frozen=True)
class Wait:
    """Look again after so many seconds; others get their turn meanwhile."""

    seconds: float = 0.5


@dataclass(frozen=True)
class End:
    outcome: SyncOutcome
    message: str = ""


Result = Go | Wait | End


@dataclass(frozen=True)
class Work:
    lease: Lease
    sync_id: Any

    @property
    def stack(self) -> Stack:
        """As it is now, to read from."""
        return Stack.objects.select_related("host", "owner", "source_by", "deployed").get(
            pk=self.lease.stack_id
        )

    @property
    def sync(self) -> Sync:
        return Sync.objects.select_related("revision", "target").get(pk=self.sync_id)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A transaction in which nobody else works on the stack; raises LeaseLost otherwise."""
        with transaction.atomic():
            hold(self.lease, timezone.now())
            yield
            events.publish("stack", self.lease.stack_id)

    @contextmanager
    def locked(self) -> Iterator[Stack]:
        """The same, with the stack's row. In whose name is written is read from it: the stack may
        have been handed over since the step began."""
        with self.held():
            rows = Stack.objects.select_related("host", "owner", "deployed")
            yield rows.get(pk=self.lease.stack_id)

    def set(self, **columns: Any) -> None:
        """Columns of the sync; inside `held` or `locked`."""
        Sync.objects.filter(pk=self.sync_id).update(**columns)

    def set_stack(self, **columns: Any) -> None:
        Stack.objects.filter(pk=self.lease.stack_id).update(**columns)

    def log(self, sentence: str) -> None:
        """One line; a log that is long enough already takes no more."""
        line = f"{timezone.now():%H:%M:%S} {sentence[:_LINE_LIMIT]}\n"
        with self.held():
            rows = Sync.objects.filter(pk=self.sync_id).annotate(size=Length("log"))
            rows.filter(size__lt=_LOG_LIMIT).update(log=Concat(F("log"), Value(line)))
