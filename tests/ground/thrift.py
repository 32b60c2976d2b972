"""What every test process may leave out: dear password hashes, and garbage where there is none."""

import gc

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher

# Modules and tests come to stay: to look for garbage among them finds nothing, every time anew.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Hash passwords as the product does, with as little work as the algorithm allows."""
    Argon2PasswordHasher.time_cost = 1
    Argon2PasswordHasher.memory_cost = 8
    Argon2PasswordHasher.parallelism = 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage from here on, and only what the tests make."""
    gc.freeze()
    gc.enable()
