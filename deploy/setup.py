"""Prepares this machine for `make run` or `make test`, in steps that can all be repeated."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from typing import TYPE_CHECKING

from setup_bundle import bundle_pages
from setup_engine import start_engine_if_none_answers
from setup_pages import install_page_packages
from setup_python import (
    check_python_version,
    create_virtualenv,
    install_python_packages,
)
from setup_report import ROOT, SetupError, load_dotenv
from setup_rules import install_rule_checker
from setup_system import install_system_packages

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = tuple[str, Callable[[], object]]


def steps_for(purpose: str) -> list[Step]:
    """Return the steps in order; tests start an engine of their own, so they need none running."""
    steps: list[Step] = [
        ("python version", check_python_version),
        ("system packages", lambda: install_system_packages(purpose)),
        ("virtual environment", create_virtualenv),
        ("python packages", lambda: install_python_packages(purpose)),
        ("page packages", install_page_packages),
        ("page bundle", bundle_pages),
    ]
    if purpose == "run":
        steps.append(("docker engine", start_engine_if_none_answers))
    else:
        steps.append(("rule checker", install_rule_checker))
    return steps


def perform(steps: list[Step]) -> None:
    """Run the steps one after the other and print one line for each."""
    for name, step in steps:
        print(f"{name} ... ", end="", flush=True)
        started = time.monotonic()
        try:
            step()
        except SetupError as error:
            print("failed", flush=True)
            raise SystemExit(f"Set-up stopped: {error}") from None
        print(f"ok ({time.monotonic() - started:.1f} s)", flush=True)


def main() -> None:
    """Parse the purpose, wait for a set-up already under way in this clone, and do the steps."""
    if len(sys.argv) != 2 or sys.argv[1] not in ("run", "test"):
        raise SystemExit("usage: python3 deploy/setup.py run|test")
    load_dotenv()
    # The lock is on the folder itself: it needs no file and ends with the process.
    folder = os.open(ROOT, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        perform(steps_for(sys.argv[1]))
    except KeyboardInterrupt:
        raise SystemExit(
            "\nSet-up was interrupted; run the same command again to continue."
        ) from None


if __name__ == "__main__":
    main()
