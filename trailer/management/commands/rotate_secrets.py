"""`manage.py rotate_secrets`: see docs/access.md for the order of steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from agent.protocol.counting import counted
from trailer.audit.head import keep_head
from trailer.audit.horizon import not_ahead
from trailer.audit.record import record
from trailer.audit.sealing import NotSealed, audit_seal, newest_seal
from trailer.audit.verify import verify_and_record
from trailer.key_rotation import rotate_secrets
from trailer.keys import KEYS_FILE, prepend_key, write_for_owner

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Writes every stored secret anew, with the first key and bound to its row and column."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--make-key",
            action="store_true",
            help="first step: put a new key in front of those in the data folder",
        )
        parser.add_argument(
            "--key-file",
            type=Path,
            metavar="KEYFILE",
            help="with --make-key, where the keys come from TRAILER_SECRET_KEYS: a new file for "
            "the new key, readable by you alone",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="also when the audit is not as it was sealed: the new key then vouches for it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["make_key"]:
            self._make_key(options["key_file"])
            return
        problems = self._problems_of_audit(is_forced=options["force"])
        done = rotate_secrets()
        record("secret.rotate", changes=problems)
        self._vouch(is_forced=options["force"])
        for name, count in sorted(done.unreadable.items()):
            self.stderr.write(f"{name}: {count} can't be read there with any present key.")
        self.stdout.write(
            f"{counted(done.renewed, 'secret')} written anew. Once all servers have the new key, "
            "the older ones can be removed."
        )

    def _problems_of_audit(self, *, is_forced: bool) -> list[dict[str, Any]]:
        """Without the older keys nobody could tell any more what was true."""
        found = verify_and_record()
        if not found.problems:
            return []
        for problem in found.problems:
            self.stderr.write(problem)
        if not is_forced:
            raise CommandError(
                "Nothing was rotated: the audit is not as it was sealed, and the new key would "
                "vouch for it. Find out why first (docs/troubleshooting.md), or say --force."
            )
        return [{"field": "problems", "from": found.problems, "to": "accepted"}]

    def _vouch(self, *, is_forced: bool) -> None:
        """The new key vouches for what the older ones sealed: they can go."""
        now = not_ahead(timezone.now())
        try:
            audit_seal(now, in_any_case=True, over_problems=is_forced)
        except NotSealed as problem:
            raise CommandError(
                f"The secrets were written anew, but the audit was not sealed: {problem} Keep the "
                "older keys, and rotate again once that is mended."
            ) from problem
        last = newest_seal()
        if last is not None:
            keep_head(last)

    def _hand_out(self, key: str, target: Path | None) -> None:
        """Never printed: terminals and logs are kept, and read by others."""
        if target is None:
            raise CommandError(
                "The keys come from TRAILER_SECRET_KEYS, which can't be changed from here. Say "
                "--key-file KEYFILE: the new key is written into that new file, which only you "
                "may read."
            )
        try:
            write_for_owner(target, [key])
        except OSError as error:
            raise CommandError(f"The key was not written: {error}") from error
        self.stdout.write(
            f"The new key is in {target}. Put it in front of those in TRAILER_SECRET_KEYS, delete "
            "that file, restart, then run this command without --make-key."
        )

    def _make_key(self, target: Path | None) -> None:
        key = Fernet.generate_key().decode()
        path = settings.TRAILER_DATA_DIR / KEYS_FILE
        if not path.exists():
            self._hand_out(key, target)
            return
        prepend_key(path, key)
        self.stdout.write(
            f"A new key is the first in {path}. Restart Trailer, then run rotate_secrets."
        )
