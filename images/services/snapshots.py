"""Snapshots: images committed from a workspace's container, one at a time per workspace.

The state document names the workspace; what its container holds is known to the agent alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from images.choices import BuildStatus, BuildTrigger, ImageKind
from images.models import Image
from images.selectors import newest_build
from images.services.fields import check_image
from images.services.queue import UNDER_WAY, build_end, build_queue
from images.services.quota import check_disk_quota
from images.services.rules import check_name_is_free
from trailer import events, policy
from trailer.access.reliance import object_users
from trailer.errors import Conflict

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from hosts.models import Host
    from trailer.policy import Actor

_MADE_NOTHING: Final = frozenset({BuildStatus.FAILED, BuildStatus.CANCELLED})


@dataclass(frozen=True)
class Source:
    """The workspace that a snapshot is taken of, and the image that it runs."""

    id: UUID
    name: str
    owner_id: Any
    image_id: UUID


def snapshot_create(*, actor: Actor, host: Host, name: str, source: Source) -> Image:
    """Inside the caller's transaction, with the host's row locked and the workspace judged.

    The snapshot belongs to the owner of the workspace and counts on their quota, whoever takes it.
    Without a name of its own it is called after the workspace.
    """
    check_disk_quota(actor=actor, owner_id=source.owner_id)
    image = Image(
        owner_id=source.owner_id,
        made_by=actor,
        host=host,
        kind=ImageKind.SNAPSHOT,
        name=name or _made_up_name(source.name, host),
        source_workspace=source.id,
        source_image=source.image_id,
    )
    check_image(image)
    check_name_is_free(image.name, host_id=host.pk)
    image.save(force_insert=True)
    build_queue(image, trigger=BuildTrigger.REQUESTED, actor=actor)
    events.publish("image", image.pk)
    return image


def check_image_right(workspace: Any) -> None:
    """A snapshot carries the image of its workspace along: it takes the right to use that."""
    if problem := object_users().image_problem(workspace):
        raise Conflict(f"No snapshot can be taken. {problem}", code="blocked")


def check_no_snapshot_under_way(workspace_id: UUID, workspace_name: str) -> None:
    """Each pauses the container for a moment; the second waits until the first is over."""
    busy = _under_way(workspace_id).first()
    if busy is not None:
        raise Conflict(
            f"The snapshot {busy.name} of workspace {workspace_name} is under way. "
            "Wait for it, or cancel it.",
            code="under_way",
        )


def check_snapshot_retry(actor: Actor, image: Image) -> None:
    """What a snapshot holds is fixed once it is made; only one that made nothing is tried again.

    It reads the workspace's files once more, so owning the image is not enough; and what it reads
    belongs to whoever owns the workspace now.
    """
    if image.status not in _MADE_NOTHING:
        raise Conflict(
            f"Image {image.name} is a snapshot and stays as it is. "
            "Take another snapshot from the workspace."
        )
    source = image.source_workspace
    workspace = image.host.workspaces.filter(pk=source).first() if source else None
    if workspace is None:
        raise Conflict(
            f"The workspace that {image.name} was to be a snapshot of is gone. "
            "Delete the image, and take a snapshot of another workspace."
        )
    policy.require(actor, "workspace.copy", workspace)
    if workspace.owner_id != image.owner_id:
        raise Conflict(
            f"The image {image.name} belongs to somebody else than the workspace "
            f"{workspace.name}. Take a new snapshot; that one belongs to the workspace's owner."
        )
    check_image_right(workspace)
    check_no_snapshot_under_way(workspace.pk, workspace.name)


def snapshots_abandon(workspace_id: UUID) -> None:
    """The workspace goes, or to another owner: what is being made of it ends. Inside the caller's
    transaction."""
    for image in _under_way(workspace_id).select_related("host"):
        build = newest_build(image)
        if build is not None and build.status in UNDER_WAY:
            build_end(image, build)


def snapshots_of(*, actor: Actor, workspace: Any) -> QuerySet[Image]:
    """All of this workspace, whoever owns them; newest first."""
    policy.require(actor, "workspace.snapshots", workspace)
    rows = Image.objects.filter(kind=ImageKind.SNAPSHOT, source_workspace=workspace.pk)
    return rows.select_related("owner", "made_by").order_by("-created_at", "pk")


def _under_way(workspace_id: UUID) -> QuerySet[Image]:
    return Image.objects.filter(
        kind=ImageKind.SNAPSHOT, source_workspace=workspace_id, status__in=UNDER_WAY
    )


def _made_up_name(workspace_name: str, host: Host) -> str:
    """`<workspace>-<UTC time>`; two within one second are told apart by a number."""
    moment = timezone.now().astimezone(UTC).strftime("%Y%m%d-%H%M%S")
    wanted = f"{workspace_name}-{moment}"
    taken = set(
        Image.objects.filter(host=host, name__startswith=wanted).values_list("name", flat=True)
    )
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name
