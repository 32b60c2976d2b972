"""Volumes: made when absent, never changed, removed only by tombstone (see cleanup)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.diff.holders import maker
from agent.diff.networks import Ready
from agent.diff.view import View, object_key
from agent.engine_requests import VolumeRequest
from agent.plan import PlanBuilder, ResourceFinding
from agent.protocol import naming
from agent.steps import VOLUME, CreateVolume

if TYPE_CHECKING:
    from agent.protocol.state import DesiredVolume

# Of volumes that were made before each had a mark of its own.
UNMARKED: Final = "unmarked"


def diff_volumes(view: View, plan: PlanBuilder) -> dict[str, Ready]:
    return {
        volume.id: _diff_volume(view, plan, volume)
        for volume in sorted(view.desired.volumes, key=lambda v: (v.name, v.id))
    }


def _diff_volume(view: View, plan: PlanBuilder, volume: DesiredVolume) -> Ready:
    key = object_key(VOLUME, volume.id)
    refused = view.knows.refused.get(key)
    if refused:
        _report(plan, volume, "error", message=refused)
        return Ready(problem=f"Volume {volume.name} is not ready: {refused}")
    if volume.kind == "bind":
        # The host's own folder: the engine checks it when a container wants it.
        _report(plan, volume, "created")
        return Ready()
    if view.is_busy(key):
        return Ready(problem=f"Waiting for volume {volume.name}.", waiting=True)
    name = naming.volume_name(volume.name)
    found = view.volumes_by_name.get(name)
    if found is not None and view.owns_volume(found):
        holder = found.labels[naming.LABEL_VOLUME]
        if holder != volume.id:
            return _held_by_another(view, plan, volume, holder)
        instance = found.labels.get(naming.LABEL_INSTANCE, UNMARKED)
        _report(plan, volume, "created", engine_id=name, instance=instance)
        return Ready()
    problem = view.knows.held.get(key, "")
    if volume.kind != "volume":
        problem = f"Kind {volume.kind} is not supported by this agent version."
    elif found is not None:
        made = maker(view, found.labels)
        problem = f"The name {name} is held by a volume, {made}; choose another name for this one."
    if problem:
        _report(plan, volume, "error", message=problem)
        return Ready(problem=f"Volume {volume.name} is not ready: {problem}")
    labels = view.labels_for(VOLUME, naming.LABEL_VOLUME, volume.id)
    step = CreateVolume(
        key=key,
        name=volume.name,
        cause="not on the engine",
        request=VolumeRequest(name=name, labels=labels),
    )
    return Ready(after=(plan.add(step),))


def _held_by_another(view: View, plan: PlanBuilder, volume: DesiredVolume, holder: str) -> Ready:
    """The name was given on, the data is not: it belongs to whoever had the name before."""
    ordered = any(t.kind == VOLUME and t.object_id == holder for t in view.desired.tombstones)
    if ordered:
        status, problem = "pending", "It waits until a deleted volume of this name is removed."
    else:
        status = "error"
        problem = (
            "Its name is held by another volume, which was never ordered to be removed. Choose "
            f"another name, or have {naming.volume_name(volume.name)} removed on the host."
        )
    _report(plan, volume, status, message=problem)
    return Ready(problem=f"Volume {volume.name} is not ready: {problem}", waiting=ordered)


def _report(
    plan: PlanBuilder,
    volume: DesiredVolume,
    status: str,
    *,
    message: str = "",
    engine_id: str = "",
    instance: str = "",
) -> None:
    plan.findings.append(
        ResourceFinding(
            resource=VOLUME,
            object_id=volume.id,
            status=status,
            message=message,
            engine_id=engine_id,
            instance=instance,
        )
    )
