"""What a replace would throw away: asked from the agent before a person decides.

Never under a lock or in a transaction: the answer may take three seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from asgiref.sync import async_to_sync
from django.utils import timezone

from agent.protocol.compare import REPLACE
from agent.protocol.writable_layer import MOST_PATHS_SHOWN, WritableLayer, WrittenPath
from hosts.status import host_status, is_out_of_reach
from trailer import policy
from trailer.errors import WouldLoseFiles
from trailer.revisions import check_revision
from trailer.validation import stored_text
from workspaces.choices import DesiredState
from workspaces.models import Workspace
from workspaces.selectors import workspace_get
from workspaces.sessions.access import Place
from workspaces.sessions.layers import Found, layers_of
from workspaces.status import workspace_badge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any
    from uuid import UUID

    from images.models import Image
    from trailer.policy import Actor
    from workspaces.services.change import Change

# Names of files are content: who may open a terminal sees them.
NAMES_RIGHT: Final = "workspace.exec"
SNAPSHOT: Final = "snapshot"
_NO_NAMES: Final = "The names of files are shown to those who may open a terminal."
_MOST_PATH: Final = 4096
# Workspaces of one image; all are asked about at once.
MOST_ASKED: Final = 100
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Without a layer, `reason` says why; beside one, why its paths are left out. With
    `can_snapshot` the actor may keep the files in a snapshot now."""

    loses_files: bool = False
    layer: WritableLayer | None = None
    reason: str = ""
    can_snapshot: bool = False


NOTHING: Final = Loss()


def loss_of(actor: Actor, workspace: Workspace, action: str) -> Loss:
    """Of a plan's action; only a replace throws files away, and only then the agent is asked."""
    return losses_of(actor, [workspace])[0] if action == REPLACE else NOTHING


def losses_of(actor: Actor, workspaces: Sequence[Workspace]) -> list[Loss]:
    """What each would lose if its container were replaced now; the hosts are asked at once."""
    now = timezone.now()
    away: dict[UUID, Found] = {}
    asked: list[Place] = []
    for workspace in workspaces:
        host = workspace.host
        if not workspace.container_id:
            away[workspace.pk] = Found()
        elif is_out_of_reach(host, now):
            label = host_status(host, now).label.lower()
            away[workspace.pk] = Found(problem=f"Host {host.name} is {label}.")
        else:
            asked.append(_place(workspace))
    found = async_to_sync(layers_of)(asked, str(actor.pk)) if asked else []
    by_id = away | {place.workspace_id: one for place, one in zip(asked, found, strict=True)}
    return [
        _loss(actor, workspace, by_id[workspace.pk], _can_snapshot(actor, workspace, now))
        for workspace in workspaces
    ]


@dataclass(frozen=True, kw_only=True)
class ReplaceLoss:
    """A workspace whose container would go, why, and what would be gone with it."""

    workspace: Workspace
    why: str
    loss: Loss


def replace_losses(
    actor: Actor, replaced: Sequence[tuple[Workspace, str]]
) -> tuple[ReplaceLoss, ...]:
    """Those of them that would lose files."""
    losses = losses_of(actor, [workspace for workspace, _ in replaced])
    return tuple(
        ReplaceLoss(workspace=workspace, why=why, loss=loss)
        for (workspace, why), loss in zip(replaced, losses, strict=True)
        if loss.loses_files
    )


def image_losses(actor: Actor, image: Image) -> tuple[ReplaceLoss, ...]:
    """Of workspaces that run from it and that the actor may see, should it be made again."""
    rows = Workspace.objects.visible_to(actor).filter(
        image=image, desired_state=DesiredState.RUNNING
    )
    running = rows.exclude(container_id="").select_related("host", "owner")
    return replace_losses(actor, [(row, "image") for row in running.order_by("name")[:MOST_ASKED]])


def revision_without_loss(
    actor: Actor,
    workspace: Workspace,
    expected_revision: int | None,
    prepare: Callable[[Workspace], Change],
) -> int:
    """The revision at which this change loses nothing: saved is only at that one."""
    current = workspace_get(workspace.pk)
    check_revision(current.revision, expected_revision)
    change = prepare(current)
    refuse_loss(current, loss_of(actor, current, change.action))
    return current.revision


def refuse_loss(workspace: Workspace, loss: Loss) -> None:
    """For clients that would rather not change than lose."""
    if loss.loses_files:
        what = (
            f"Files in its container outside of volumes would be gone ({_amount(loss.layer)})."
            if loss.layer is not None
            else f"Files in its container outside of volumes may be gone. {loss.reason}"
        )
        raise WouldLoseFiles(
            f"{workspace.name} was not replaced. {what} Take a snapshot first, or send the "
            "request without refuse_loss.",
            extra=loss_body(loss),
        )


def loss_body(loss: Loss) -> dict[str, Any]:
    """As every answer holds it."""
    return {
        "loses_files": loss.loses_files,
        "writable_layer": None if loss.layer is None else _layer_body(loss.layer),
        "writable_layer_reason": loss.reason,
        "can_snapshot": loss.can_snapshot,
    }


def replace_body(losses: Sequence[ReplaceLoss], problem: str = "") -> dict[str, Any]:
    """As the plans of images and stacks hold it."""
    return {
        "workspaces": [
            {
                "workspace": item.workspace.pk,
                "name": item.workspace.name,
                "service": item.workspace.service,
                "why": item.why,
                **loss_body(item.loss),
            }
            for item in losses
        ],
        "problem": problem,
    }


def _layer_body(layer: WritableLayer) -> dict[str, Any]:
    return {
        "size_bytes": layer.size_bytes,
        "file_count": layer.file_count,
        "deleted_count": layer.deleted_count,
        "is_whole": layer.is_whole,
        "paths": [{"path": p.path, "size_bytes": p.size_bytes} for p in layer.paths],
    }


def _place(workspace: Workspace) -> Place:
    host = workspace.host
    return Place(workspace_id=workspace.pk, host_id=host.pk, host_name=host.name, epoch=host.epoch)


def _can_snapshot(actor: Actor, workspace: Workspace, now: datetime) -> bool:
    offered = SNAPSHOT in workspace_badge(workspace).actions
    return (
        offered
        and not is_out_of_reach(workspace.host, now)
        and policy.allows(actor, "host.images", workspace.host)
        and SNAPSHOT in policy.allowed_of(actor, workspace, [SNAPSHOT])
    )


def _loss(actor: Actor, workspace: Workspace, found: Found, can_snapshot: bool) -> Loss:
    if found.problem:
        reason = f"What its container wrote is not known: {stored_text(found.problem, 512)}"
        return Loss(loses_files=True, reason=reason, can_snapshot=can_snapshot)
    layer = found.layer
    if layer is None or not layer.file_count:
        return NOTHING if layer is None else Loss(layer=_clean(layer))
    sees_names = policy.allows(actor, NAMES_RIGHT, workspace)
    return Loss(
        loses_files=True,
        layer=_clean(layer, names=sees_names),
        reason="" if sees_names else _NO_NAMES,
        can_snapshot=can_snapshot,
    )


def _clean(layer: WritableLayer, *, names: bool = True) -> WritableLayer:
    """An agent is another machine: what it says is bounded before it is shown."""
    paths = [
        WrittenPath(path=stored_text(p.path, _MOST_PATH), size_bytes=max(0, p.size_bytes))
        for p in layer.paths[:MOST_PATHS_SHOWN]
    ]
    return WritableLayer(
        size_bytes=max(0, layer.size_bytes),
        file_count=max(0, layer.file_count),
        deleted_count=max(0, layer.deleted_count),
        paths=tuple(sorted(paths, key=lambda p: -p.size_bytes)) if names else (),
        is_whole=layer.is_whole,
    )


def _amount(layer: WritableLayer) -> str:
    files = f"{layer.file_count} file{'' if layer.file_count == 1 else 's'}"
    return f"{layer.size_bytes / _MIB:.1f} MiB in {files}"
