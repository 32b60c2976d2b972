"""The database of tests inside this process, a copy of one that is migrated already, and the cache
beside it."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from django.test.utils import setup_databases, teardown_databases

from tests.ground.template import DATABASE, migrated_database


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_modify_db_settings: None, django_db_blocker: Any
) -> Iterator[None]:
    """Give each worker its database without the seconds that all migrations take.

    What is no file, such as PostgreSQL, is set up as Django does it.
    """
    with django_db_blocker.unblock():
        undo = _copied() if connections["default"].vendor == "sqlite" else _made()
    with pytest.MonkeyPatch.context() as patch:
        _let_flush_empty_the_audit(patch)
        yield
    with django_db_blocker.unblock():
        undo()


@pytest.fixture(autouse=True)
def _nothing_counted_yet() -> None:
    """What a test before this one guessed at in vain would count against this one."""
    cache.clear()


def _copied() -> Callable[[], None]:
    """In a folder of this process alone: suites that run side by side have workers of one name.
    A file, because sockets and threads share it, which a database in memory does not allow."""
    connection = connections["default"]
    connection.close()
    folder = Path(tempfile.mkdtemp(prefix="trailer-test-database-"))
    copy = folder / DATABASE
    shutil.copyfile(migrated_database(), copy)
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = str(copy)

    def undo() -> None:
        connections.close_all()
        shutil.rmtree(folder, ignore_errors=True)

    return undo


def _let_flush_empty_the_audit(patch: pytest.MonkeyPatch) -> None:
    """After a test with transactions all tables are emptied, also those that refuse it."""
    is_sqlite = connections["default"].vendor == "sqlite"
    operations = type(connections["default"].ops)
    original = operations.sql_flush

    def sql_flush(self: Any, *args: Any, **kwargs: Any) -> list[str]:
        before, after = _of_sqlite(self) if is_sqlite else _of_postgresql()
        return [*before, *original(self, *args, **kwargs), *after]

    patch.setattr(operations, "sql_flush", sql_flush)


def _of_sqlite(operations: Any) -> tuple[list[str], list[str]]:
    find = "SELECT name, sql FROM sqlite_master WHERE name IN (%s, %s)"
    names = ("audit_rows_remain", "audit_seals_remain")
    with operations.connection.cursor() as cursor:
        triggers = dict(cursor.execute(find, names).fetchall())
    return [f"DROP TRIGGER {name}" for name in triggers], list(triggers.values())


def _of_postgresql() -> tuple[list[str], list[str]]:
    tables = ("audit_auditentry", "audit_auditseal")
    off = [f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables]
    return off, [text.replace("DISABLE", "ENABLE") for text in off]


def _made() -> Callable[[], None]:
    made = setup_databases(verbosity=0, interactive=False)
    return lambda: teardown_databases(made, verbosity=0)
