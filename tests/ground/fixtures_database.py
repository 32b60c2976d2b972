"""The database of tests inside this process: a copy of one that is migrated already."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper
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
    """After a test with transactions all tables are emptied, also the one that refuses it."""
    operations = DatabaseWrapper.ops_class
    original = operations.sql_flush
    find = "SELECT sql FROM sqlite_master WHERE name = 'audit_rows_remain'"

    def sql_flush(self: Any, *args: Any, **kwargs: Any) -> list[str]:
        with self.connection.cursor() as cursor:
            trigger = cursor.execute(find).fetchone()
        statements = original(self, *args, **kwargs)
        return ["DROP TRIGGER audit_rows_remain", *statements, *trigger] if trigger else statements

    patch.setattr(operations, "sql_flush", sql_flush)


def _made() -> Callable[[], None]:
    made = setup_databases(verbosity=0, interactive=False)
    return lambda: teardown_databases(made, verbosity=0)
