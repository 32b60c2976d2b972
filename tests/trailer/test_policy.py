"""One rule per action: its predicate and its filter always agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import AnonymousUser

from tests.factories import (
    make_admin,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_token,
    make_user,
    make_volume,
    make_workspace,
)
from trailer import policy
from trailer.errors import NotAllowed, NotFound

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db


def _objects(owner: User) -> list[Any]:
    image = make_image(owner=owner)
    make_token(owner)
    return [
        image.host,
        image,
        image.builds.get(),
        make_network(owner=owner),
        make_volume(owner=owner),
        make_registry(owner),
        make_workspace(owner=owner),
        owner.api_tokens.get(),
    ]


def test_who_may_see_an_object_finds_it_and_nobody_else_does() -> None:
    owner = make_user()
    inactive_admin = make_admin(is_active=False)
    actors = [owner, make_user(), make_admin(), inactive_admin, AnonymousUser()]
    for row in _objects(owner):
        kind = row._meta.model_name
        for actor in actors:
            found = type(row).objects.filter(policy.visible(kind, actor), pk=row.pk).exists()
            assert found == policy.allows(actor, f"{kind}.view", row), (kind, actor)


def test_an_object_out_of_sight_is_absent_and_one_in_sight_forbidden() -> None:
    network = make_network()
    with pytest.raises(NotFound):
        policy.require(make_user(), "network.delete", network)
    with pytest.raises(NotAllowed):
        policy.require(make_user(), "host.delete", make_host())
    policy.require(network.owner, "network.delete", network)


def test_an_unknown_action_is_a_bug_and_not_a_yes() -> None:
    with pytest.raises(KeyError):
        policy.allows(make_admin(), "network.paint")
