"""`manage.py verify_audit`: is the audit as it was sealed? See docs/access.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from agent.protocol.counting import counted
from trailer.audit.head import head_forget
from trailer.audit.verify import verify_and_record

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Compare every audit row with its seal, and say what was changed, removed or added."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--head",
            default="",
            metavar="NUMBER:DIGEST",
            help="a seal that an export or a log line named; it has to be there still",
        )
        parser.add_argument(
            "--forget-head",
            action="store_true",
            help="first forget the seal that is written down outside the database: for a database "
            "that was put back, or made anew, by other means than restore",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["forget_head"]:
            head_forget("audit.accepted")
        found = verify_and_record(options["head"])
        for problem in found.problems:
            self.stderr.write(problem)
        if found.untold:
            self.stderr.write(f"And {found.untold} more of this kind.")
        if found.problems:
            raise CommandError("The audit is not as it was sealed.")
        if found.last is None:
            self.stdout.write(f"Nothing is sealed yet: {counted(found.unsealed, 'row')}.")
            return
        until = found.last.until.isoformat(sep=" ", timespec="seconds")
        self.stdout.write(
            f"Up to {until}, {counted(found.rows, 'row')}: all as sealed. "
            f"Newer and not sealed yet: {found.unsealed}. The last seal is {found.last.head}"
        )
