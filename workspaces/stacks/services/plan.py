"""Which services a deploy would replace, and the files that would be gone with their containers.

The deploy is tried in a transaction that is rolled back, so that it decides as the real one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import transaction

from agent.protocol.compare import REPLACE
from images.choices import UpdatePolicy
from images.models import Image
from images.selectors import update_available
from trailer import policy
from trailer.errors import ApplicationError
from workspaces.models import Workspace
from workspaces.selectors import workspace_get
from workspaces.services.loss import ReplaceLoss, replace_losses
from workspaces.stacks.file.errors import StackFileError
from workspaces.stacks.git.types import GitError
from workspaces.stacks.models import Stack
from workspaces.stacks.services.actions import rollback_target
from workspaces.stacks.sync import repository as repositories
from workspaces.stacks.sync.apply import Order, planned_change, workspace_of
from workspaces.stacks.sync.desired import desired_of
from workspaces.stacks.sync.fetch import revision_for
from workspaces.stacks.sync.places import image_key, places_of
from workspaces.stacks.sync.work import SyncProblem

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from trailer.policy import Actor
    from workspaces.stacks.models import StackRevision

CHANGED: Final = "changed"
REMOVED: Final = "removed"
NEWER_IMAGE: Final = "newer_image"
# The tag is looked at again, and may have moved.
PULLED_AGAIN: Final = "pulled_again"
# Other settings may mean other files, which nobody has read yet.
MAY_CHANGE: Final = "may_change"


@dataclass(frozen=True, kw_only=True)
class StackPlan:
    """`problem` is why nobody can tell; such a deploy fails before it replaces anything."""

    losses: tuple[ReplaceLoss, ...] = ()
    problem: str = ""


class _Tried(Exception):
    """Undoes what was only tried."""


def stack_deploy_plan(*, actor: Actor, stack: Stack, forced: bool = True) -> StackPlan:
    """Of the newest commit; asks the repository. Without `forced` no image is pulled again."""
    policy.require(actor, "stack.modify", stack)
    try:
        found = repositories.source_of(stack).fetch()
    except GitError as error:
        return StackPlan(problem=error.message)
    return _plan(actor, stack, lambda current: revision_for(current, found), forced=forced)


def stack_rollback_plan(*, actor: Actor, stack: Stack, revision: int | None) -> StackPlan:
    policy.require(actor, "stack.modify", stack)
    target = rollback_target(stack, revision=revision, commit="", sync_id=None)
    return _plan(actor, stack, lambda _: target, forced=True)


def stack_settings_plan(*, actor: Actor, stack: Stack) -> StackPlan:
    """Before other settings are saved, which deploys the stack by them: every service that would
    lose files if it were replaced."""
    policy.require(actor, "stack.modify", stack)
    made = Workspace.objects.filter(stack=stack.pk).exclude(container_id="").order_by("service")
    reasons = [(workspace_get(pk), MAY_CHANGE) for pk in made.values_list("pk", flat=True)]
    return StackPlan(losses=replace_losses(actor, reasons))


def _plan(
    actor: Actor, stack: Stack, revision_of: Callable[[Stack], StackRevision], *, forced: bool
) -> StackPlan:
    replaced: dict[UUID, str] = {}
    try:
        with transaction.atomic():
            rows = Stack.objects.select_related("host", "owner", "source_by", "deployed")
            current = rows.get(pk=stack.pk)
            replaced = _replaced(current, revision_of(current), forced=forced)
            raise _Tried
    except _Tried:
        pass
    except (StackFileError, SyncProblem, ApplicationError) as error:
        return StackPlan(problem=error.message)
    reasons = [(workspace_get(pk), why) for pk, why in replaced.items()]
    return StackPlan(losses=replace_losses(actor, reasons))


def _replaced(stack: Stack, revision: StackRevision, *, forced: bool) -> dict[UUID, str]:
    """Workspaces with a container that would go, and why."""
    desired = desired_of(stack, revision)
    places = places_of(stack, revision, desired.file, desired.all_services)
    order = Order(stack=stack, places=places, cause="", since=revision.created_at)
    images = Image.objects.in_bulk(list(places.images.values()))
    replaced: dict[UUID, str] = {}
    for service in desired.all_services:
        workspace = workspace_of(stack, service.name)
        if workspace is None or not workspace.container_id:
            continue
        image = images[places.images[image_key(service)]]
        if planned_change(order, workspace, service).action == REPLACE:
            replaced[workspace.pk] = CHANGED
        elif update_available(image):
            replaced[workspace.pk] = NEWER_IMAGE
        elif forced and image.update_policy == UpdatePolicy.ALWAYS:
            replaced[workspace.pk] = PULLED_AGAIN
    names = {service.name for service in desired.all_services}
    gone = Workspace.objects.filter(stack=stack.pk).exclude(service__in=names)
    return replaced | {row.pk: REMOVED for row in gone if row.container_id}
