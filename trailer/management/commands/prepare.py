"""`manage.py prepare`: what a production start needs once, before its processes begin."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from trailer.key_rotation import bind_secrets
from trailer.standalone.bootstrap import ensure_admin


class Command(BaseCommand):
    help = "Bring the database up to date, collect static files, make the first administrator."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        bind_secrets()
        if settings.STATIC_ROOT:
            call_command("collectstatic", interactive=False, verbosity=0)
        username = os.environ.get("TRAILER_ADMIN_USERNAME") or "admin"
        generated = ensure_admin(username, os.environ.get("TRAILER_ADMIN_PASSWORD", ""))
        if generated is not None:
            self.stdout.write(
                f"\n  Administrator: {username}\n  Password:      {generated}\n"
                "  This password is shown only once.\n"
            )
        self.stdout.write("The database is ready.")
