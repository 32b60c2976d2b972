"""What every test process may leave out: dear password hashes, garbage where there is none, and
the same look at all static files and at installed packages for each test."""

import gc
import sys
from typing import Any

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from whitenoise.middleware import WhiteNoiseMiddleware

# Modules and tests come to stay: to look for garbage among them finds nothing, every time anew.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Hash passwords as the product does, with as little work as the algorithm allows."""
    Argon2PasswordHasher.time_cost = 1
    Argon2PasswordHasher.memory_cost = 8
    Argon2PasswordHasher.parallelism = 1
    _walk_over_static_files_once()


def _walk_over_static_files_once() -> None:
    """Every test client loads the middleware anew; the files are the same all along."""
    walk = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def add_files_from_finders(self: Any) -> None:
        if not found:
            walk(self)
            found.update(self.files)
        self.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = add_files_from_finders


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage from here on, and only what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_runtest_logstart() -> None:
    """Pytest reads the version of Twisted from the disk before each test once its test runner,
    which nothing here uses, is loaded; the web server's library loads it."""
    sys.modules.pop("twisted.trial.unittest", None)
