"""Writers of one process take turns, and nobody keeps a turn that is over."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from hosts.models import AgentToken
from trailer.sqlite.base import turn_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)


def turn() -> threading.Lock:
    return turn_of(str(connection.settings_dict["NAME"]))


def test_who_waits_does_not_ask_sqlite_before_the_one_before_it_has_ended() -> None:
    asked: list[str] = []
    begun = threading.Event()

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    def write() -> None:
        try:
            with connection.execute_wrapper(note):
                begun.set()
                with transaction.atomic():
                    pass
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            waiting = pool.submit(write)
            assert begun.wait(5)
            assert not asked
            assert not waiting.done()
        waiting.result(5)
    assert asked == ["BEGIN IMMEDIATE"]
    assert not turn().locked()


def broken_inside() -> None:
    with pytest.raises(ValueError, match="inside"), transaction.atomic():
        raise ValueError("inside")


def closed_inside() -> None:
    with transaction.atomic():
        connection.close()


def refused_by_sqlite() -> None:
    """Another process writes for longer than anybody waits."""
    connection.ensure_connection()
    connection.connection.execute("PRAGMA busy_timeout=1")
    other = sqlite3.connect(connection.settings_dict["NAME"])
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(OperationalError, match="locked"), transaction.atomic():
            raise AssertionError("the transaction began")
    finally:
        other.close()
        connection.close()


def refused_at_its_end() -> None:
    """A row that points to nothing is found by the commit."""
    with pytest.raises(IntegrityError, match="FOREIGN KEY"), transaction.atomic():
        AgentToken.objects.create(host_id=uuid4(), digest="0" * 64)


@pytest.mark.parametrize(
    "ends", [broken_inside, closed_inside, refused_by_sqlite, refused_at_its_end]
)
def test_a_transaction_passes_its_turn_on_however_it_ends(ends: Callable[[], None]) -> None:
    ends()
    assert not turn().locked()
    with transaction.atomic():
        assert turn().locked()
    assert not turn().locked()


def test_a_turn_that_never_comes_leaves_the_decision_to_sqlite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.01)
    with turn(), transaction.atomic():
        assert connection.in_atomic_block
    assert not turn().locked()
