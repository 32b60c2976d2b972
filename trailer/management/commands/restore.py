"""`manage.py restore FILE --yes`: back to a backup; agents then wait for a confirmation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from hosts.services.restored import HELD, hosts_hold_after_restore
from trailer.audit.head import head_forget
from trailer.backup.archive import backup_keys, backup_read
from trailer.keys import write_for_owner
from trailer.standalone.lock import hold_data_dir

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from trailer.backup.archive import About


class Command(BaseCommand):
    help = "Replace the database and its keys by a backup. Stop the server first."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--yes", action="store_true", help="replace what is there now")

        parser.add_argument(
            "--write-keys",
            type=Path,
            metavar="KEYFILE",
            help="restore nothing; write the backup's encryption keys into this new file, "
            "readable by you alone",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write_keys"] is not None:
            self._write_keys(options["file"], options["write_keys"])
            return
        if not options["yes"]:
            raise CommandError("This replaces the whole database. Say --yes when that is meant.")
        held = hold_data_dir(settings.TRAILER_DATA_DIR)
        try:
            about = backup_read(options["file"], HELD, self._restored)
        finally:
            held.close()
        self.stdout.write(
            f"Restored the state of {about.created_at} (Trailer {about.version}). Agents remove "
            "nothing until you confirm the state on each host's page."
        )

    def _write_keys(self, source: Path, target: Path) -> None:
        keys = backup_keys(source)
        try:
            write_for_owner(target, keys)
        except OSError as error:
            raise CommandError(f"The keys were not written: {error}") from error
        self.stdout.write(
            f"The keys of the backup are in {target}, as TRAILER_SECRET_KEYS takes them. "
            "Nothing was restored. Delete that file once they are set."
        )

    def _restored(self, about: About) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        hosts_hold_after_restore()
        # The seals since the backup are gone on purpose.
        head_forget("audit.restored")
