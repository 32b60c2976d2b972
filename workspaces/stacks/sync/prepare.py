"""Before anything that runs is touched: the whole revision is checked, its images are there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from hosts.status import is_fresh
from images.choices import BuildStatus, UpdatePolicy
from images.models import Image
from images.selectors import update_available
from images.services.images import image_build
from images.services.queue import UNDER_WAY
from trailer.errors import Conflict
from workspaces.stacks.choices import Phase
from workspaces.stacks.file.errors import StackFileError
from workspaces.stacks.file.reader import read_stack_file
from workspaces.stacks.sync.apply import Order, rehearse
from workspaces.stacks.sync.away import AWAY_SECONDS, is_host_disabled
from workspaces.stacks.sync.desired import desired_of
from workspaces.stacks.sync.places import places_of
from workspaces.stacks.sync.shared_names import same_names
from workspaces.stacks.sync.summary import summary
from workspaces.stacks.sync.work import Go, SyncProblem, Wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workspaces.stacks.models import Stack, StackRevision, Sync
    from workspaces.stacks.sync.desired import Desired
    from workspaces.stacks.sync.places import Places
    from workspaces.stacks.sync.work import Result, Work


def prepare(work: Work) -> Result:
    stack, sync = work.stack, work.sync
    if not stack.host.enabled:
        raise SyncProblem(
            f"The host {stack.host.name} is disabled, so nothing can be deployed there.",
            retry=True,
        )
    if not is_fresh(stack.host, timezone.now()):
        raise SyncProblem(
            f"The host {stack.host.name} does not answer, so nothing can be deployed there.",
            retry=True,
        )
    with work.locked() as stack:
        desired, places = targets(stack, sync)
        order = Order(stack=stack, places=places, cause=cause(stack, sync), since=sync.phase_at)
        names = {service.name for service in desired.all_services}
        rehearse(order, desired.all_services, names)
        doubles = same_names(stack, places, desired.all_services)
        work.set(diff=_diff(stack, sync), commit=sync.commit or _revision(sync).commit)
        for image in Image.objects.filter(pk__in=places.images.values()):
            _ask_again(stack, sync, image)
    for sentence in doubles:
        work.log(sentence)
    return Go(Phase.PULLING)


def targets(stack: Stack, sync: Sync) -> tuple[Desired, Places]:
    """Inside a transaction that holds the lease."""
    desired = desired_of(stack, _revision(sync))
    return desired, places_of(stack, _revision(sync), desired.file, desired.all_services)


def cause(stack: Stack, sync: Sync) -> str:
    commit = sync.commit or _revision(sync).commit
    return f"Stack {stack.name} at {commit[:8]}:"


def pull(work: Work) -> Result:
    sync = work.sync
    if is_host_disabled(work, work.stack):
        return Wait(AWAY_SECONDS)
    with work.locked() as stack:
        _, places = targets(stack, sync)
    images = list(Image.objects.filter(pk__in=places.images.values()).order_by("reference"))
    if failed := [image for image in images if _is_out(image)]:
        _tell_failure(sync, failed)
        with work.locked() as stack:
            for image in failed:
                _build(stack, image)
        return Wait()
    if any(image.status in UNDER_WAY for image in images):
        _check_patience(stack, sync, images)
        return Wait()
    for image in images:
        if image.status != BuildStatus.FINISHED:
            work.log(
                f"The image {image.reference} could not be pulled again ({image.message}); "
                "the one on the host is used."
            )
    return Go(Phase.NEEDS)


def _revision(sync: Sync) -> StackRevision:
    if sync.revision is None:
        raise SyncProblem("The revision to deploy was removed meanwhile. Deploy again.")
    return sync.revision


def _ask_again(stack: Stack, sync: Sync, image: Image) -> None:
    """What failed before gets a new chance; what is forced or outdated is pulled although it is
    there. An image that is being pulled already is waited for."""
    follows = image.update_policy == UpdatePolicy.ALWAYS
    again = image.status in (BuildStatus.FAILED, BuildStatus.CANCELLED)
    if again or (follows and (sync.forced or update_available(image))):
        _build(stack, image)


def _build(stack: Stack, image: Image) -> None:
    try:
        image_build(actor=stack.owner, image=image)
    except Conflict as conflict:
        if conflict.code != "under_way":
            raise


def _tell_failure(sync: Sync, failed: list[Image]) -> None:
    """Raises for a pull of which it was not said yet that it failed; once that was told and its
    time was waited for, the next one is due. A registry may be away for a moment, a tag be pushed
    after its commit; a person who cancelled meant it."""
    for image in failed:
        made = image.builds.filter(created_at__gte=sync.started_at)
        tries = made.filter(status=BuildStatus.FAILED).count()
        is_cancelled = image.status == BuildStatus.CANCELLED
        if is_cancelled or tries > sync.attempt:
            raise SyncProblem(
                f"The image {image.reference} can't be had: {image.message}",
                retry=not is_cancelled,
            )


def _is_out(image: Image) -> bool:
    ended = image.status in (BuildStatus.FAILED, BuildStatus.CANCELLED)
    return ended and not image.engine_id


def _check_patience(stack: Stack, sync: Sync, images: Iterable[Image]) -> None:
    limit = timedelta(seconds=stack.host.pull_timeout + 60)
    if timezone.now() - sync.phase_at > limit:
        late = ", ".join(image.reference for image in images if image.status in UNDER_WAY)
        raise SyncProblem(f"The host did not get {late} within {limit}.")


def _diff(stack: Stack, sync: Sync) -> list[str]:
    new = read_stack_file(_revision(sync).file_text, _revision(sync).file_name)
    old = None
    if stack.deployed is not None:
        try:
            old = read_stack_file(stack.deployed.file_text, stack.deployed.file_name)
        except StackFileError:
            # Written for an older Trailer; everything then counts as new.
            old = None
    return summary(old, new)
