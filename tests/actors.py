"""A host and the actors that every endpoint is tried with: admin, owner, stranger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import make_admin, make_host, make_user

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User


@pytest.fixture
def host(db: None) -> Host:
    return make_host("alpha")


@pytest.fixture
def admin(db: None) -> User:
    return make_admin("root")


@pytest.fixture
def owner(db: None) -> User:
    return make_user("olga")


@pytest.fixture
def stranger(db: None) -> User:
    return make_user("stan")
