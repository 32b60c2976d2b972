"""`manage.py agent_image`: which agent images this server hands out, and how it gets another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from hosts.agent_images.store import agent_archives, archive_adopt
from trailer.errors import Invalid

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "List the agent images that this server hands out, or put one in."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            nargs="?",
            help="what `docker save` wrote of the agent's image, compressed or not; -: from "
            "standard input. It replaces the one for the same architecture.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["file"]:
            self._put_in(options["file"])
        found = agent_archives()
        for archive in found:
            self.stdout.write(
                f"{archive.architecture}  {archive.image}  {archive.size} bytes  {archive.digest}"
            )
        if not found:
            self.stdout.write("This server has no agent image to hand out.")

    def _put_in(self, name: str) -> None:
        try:
            if name == "-":
                archive_adopt(sys.stdin.buffer)
            else:
                with Path(name).open("rb") as file:
                    archive_adopt(file)
        except Invalid as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"{name} can't be read, or not stored: {error}") from error
