"""`manage.py backup FILE`: the database and its keys in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from trailer.backup.archive import backup_write

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Write a backup of the database and its keys. The server may go on meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        target: Path = options["file"].absolute()
        if not target.parent.is_dir():
            raise CommandError(f"There is no folder {target.parent}.")
        about = backup_write(target)
        self.stdout.write(
            f"{target}: {about.vendor} database of {about.created_at}, with its keys. "
            "Keep it where only you can read it."
        )
