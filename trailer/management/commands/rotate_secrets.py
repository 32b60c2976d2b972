"""`manage.py rotate_secrets`: see docs/access.md for the order of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from trailer.audit.record import record
from trailer.key_rotation import rotate_secrets
from trailer.keys import KEYS_FILE, prepend_key

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

    def handle(self, *args: Any, **options: Any) -> None:
        if options["make_key"]:
            self._make_key()
            return
        done = rotate_secrets()
        record("secret.rotate")
        for name, count in sorted(done.unreadable.items()):
            self.stderr.write(f"{name}: {count} can't be read there with any present key.")
        self.stdout.write(
            f"{done.renewed} secrets were written anew. Once all servers have the new key, "
            "the older ones can be removed."
        )

    def _make_key(self) -> None:
        key = Fernet.generate_key().decode()
        path = settings.TRAILER_DATA_DIR / KEYS_FILE
        if not path.exists():
            raise CommandError(
                "The keys come from TRAILER_SECRET_KEYS. Put this one in front of them, "
                f"restart, then run this command without --make-key: {key}"
            )
        prepend_key(path, key)
        self.stdout.write(
            f"A new key is the first in {path}. Restart Trailer, then run rotate_secrets."
        )
