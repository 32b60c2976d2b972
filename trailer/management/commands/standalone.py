"""`manage.py standalone`: what `make run` calls after set-up."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from trailer.key_rotation import bind_secrets
from trailer.standalone.bootstrap import ensure_admin
from trailer.standalone.lock import hold_data_dir
from trailer.standalone.serve import require_free_address, serve


class Command(BaseCommand):
    help = "Run the whole of Trailer in one process, with an agent on the local engine."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        lock = hold_data_dir(settings.TRAILER_DATA_DIR)
        require_free_address()
        call_command("migrate", interactive=False, verbosity=0)
        bind_secrets()
        username = os.environ.get("TRAILER_ADMIN_USERNAME") or "admin"
        generated = ensure_admin(username, os.environ.get("TRAILER_ADMIN_PASSWORD", ""))
        if generated is not None:
            self.stdout.write(
                f"\n  Administrator: {username}\n  Password:      {generated}\n"
                "  This password is shown only once.\n"
            )
        self.stdout.flush()
        try:
            serve(self._say)
        finally:
            lock.close()

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()
