"""One rule per action: its predicate and its filter always agree."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from tests.factories import (
    make_admin,
    make_grant,
    make_group,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_stack,
    make_token,
    make_user,
    make_volume,
    make_workspace,
)
from trailer import policy
from trailer.access.models import ObjectKind, Role
from trailer.errors import NotAllowed, NotFound

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
# Those that judge an object of their own kind: the rest is about the host it would be made on.
RULES_OF_OBJECTS = [
    action
    for action in policy.RULES
    if not action.split(".")[1].startswith("create") and action != "workspace.privileged"
]


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


def test_every_rule_finds_what_it_allows() -> None:
    """Whatever was granted, to whomever, until whenever, with or without a right."""
    owner, past = make_user(), timezone.now() - timedelta(seconds=1)
    stack = make_stack(owner=owner)
    service = make_workspace(stack.host, owner, stack=stack.pk, service="web")
    rows = [*_objects(owner), stack, stack.syncs.get(), service]
    actors = [owner, make_user(), make_admin(), AnonymousUser()]
    for role in Role:
        holder, member, late, narrow = (make_user() for _ in range(4))
        group = make_group(member)
        for row in rows:
            if row._meta.model_name in ObjectKind and row != service:
                make_grant(row, holder, role)
                make_grant(row, group, role)
                make_grant(row, late, role, expires_at=past)
                make_grant(row, narrow, role, logs=False, inspect=False, terminal=False)
        actors += [holder, member, late, narrow]
    judged = 0
    for row in rows:
        kind = row._meta.model_name
        for action in RULES_OF_OBJECTS:
            if action.split(".")[0] != kind:
                continue
            for actor in actors:
                found = type(row).objects.filter(policy.permitted(action, actor), pk=row.pk)
                assert found.exists() == policy.allows(actor, action, row), (action, actor)
                judged += found.exists()
    assert judged > len(RULES_OF_OBJECTS)


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
