"""The host and actors of these tests."""

from tests.actors import admin, host, owner, stranger

__all__ = ["admin", "host", "owner", "stranger"]
