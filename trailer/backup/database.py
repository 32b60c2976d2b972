"""The database as one file, with the tools that each engine has for it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.core.management.base import CommandError
from django.db import connection

if TYPE_CHECKING:
    from pathlib import Path

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"


def dump_database(target: Path) -> None:
    """A consistent copy, while the server goes on."""
    if connection.vendor == SQLITE:
        with (
            closing(sqlite3.connect(connection.settings_dict["NAME"])) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
        return
    _postgres_tool("pg_dump", ["--format=custom", "--no-owner", f"--file={target}"])


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What is set in the loaded rows before anybody sees them; a backup of a version that had no
    such column is left as it is."""

    table: str
    column: str
    statement: str


def load_database(source: Path, mark: Mark) -> None:
    """Everything that the database held before is gone afterwards, or all of it is still there."""
    if connection.vendor == SQLITE:
        connection.close()
        # Into the file that others may have open: they see a change, not a lost file.
        with (
            closing(sqlite3.connect(source)) as copy,
            closing(sqlite3.connect(connection.settings_dict["NAME"])) as target,
        ):
            columns = {row[1] for row in copy.execute(f"PRAGMA table_info({mark.table})")}
            if mark.column in columns:
                copy.execute(mark.statement)
                copy.commit()
            copy.backup(target)
        return
    connection.close()
    script = source.with_suffix(".sql")
    _run(["pg_restore", "--no-owner", f"--file={script}", str(source)])
    # Tables that a newer version made must not stay beside the older ones.
    empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
    one_transaction = ["--single-transaction", "--set=ON_ERROR_STOP=1", "--quiet", "--no-psqlrc"]
    commands = [f"--command={empty}", f"--file={script}", f"--command={_marking(mark)}"]
    _postgres_tool("psql", [*one_transaction, *commands])


def _marking(mark: Mark) -> str:
    """The script has emptied the search path."""
    return (
        "SET search_path TO public; "
        "DO $$ BEGIN IF EXISTS (SELECT FROM information_schema.columns WHERE "
        f"table_schema = 'public' AND table_name = '{mark.table}' "
        f"AND column_name = '{mark.column}') THEN {mark.statement}; END IF; END $$"
    )


def _postgres_tool(program: str, arguments: list[str]) -> None:
    """The password goes by the environment: arguments are for everybody to see."""
    settings = connection.settings_dict
    environment = {
        **os.environ,
        "PGHOST": str(settings["HOST"] or ""),
        "PGPORT": str(settings["PORT"] or ""),
        "PGUSER": str(settings["USER"] or ""),
        "PGPASSWORD": str(settings["PASSWORD"] or ""),
    }
    chosen = {name: text for name, text in environment.items() if text or name[:2] != "PG"}
    _run([program, f"--dbname={settings['NAME']}", *arguments], chosen)


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise CommandError(
            f"{command[0]} is not installed. Install PostgreSQL's client programs."
        ) from error
    if done.returncode != 0:
        raise CommandError(f"{command[0]} failed: {done.stderr.strip()}")
