"""Snapshots: which workspaces to commit now, which wait until they have settled, what to clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.current import containers_of
from agent.diff.images import build_record, cancel_build, is_settled, waits
from agent.diff.stored import read_stored
from agent.diff.view import View, object_key
from agent.protocol import naming
from agent.steps import IMAGE, WORKSPACE, RemoveImage, SnapshotImage

if TYPE_CHECKING:
    from agent.observed import ObservedContainer, ObservedImage
    from agent.plan import PlanBuilder
    from agent.protocol.state import DesiredBuild, DesiredImage, DesiredWorkspace

KIND = "snapshot"


def interrupted_commits(view: View) -> frozenset[str]:
    """Workspaces whose container an agent that died was committing, and that are still paused for
    it. The engine may be at it: only the snapshot's own work may wake them."""
    found = set()
    for image in view.desired.images:
        workspace = view.desired_workspaces.get(image.source_workspace_id)
        if workspace is None or not _was_begun(view, image):
            continue
        main, _ = containers_of(view, workspace)
        if main and main.state == "paused":
            found.add(workspace.id)
    return frozenset(found)


def diff_snapshots(view: View, plan: PlanBuilder) -> None:
    """After the workspaces: what they need comes first, and a snapshot of one that is being
    changed waits for the next plan."""
    for image in sorted(view.desired.images, key=lambda i: (i.name, i.id)):
        if image.kind != KIND or image.build is None or image.id in view.knows.running_builds:
            continue
        if view.is_busy(object_key(IMAGE, image.id)):
            continue
        if not is_settled(image.build, build_record(view, image)):
            _diff(view, plan, image, image.build)
    _clear(view, plan)


def _diff(view: View, plan: PlanBuilder, image: DesiredImage, build: DesiredBuild) -> None:
    workspace = view.desired_workspaces.get(image.source_workspace_id)
    begun = _was_begun(view, image)
    if workspace is None or (build.cancel and not begun):
        cause = "cancel requested" if build.cancel else "the workspace is gone"
        cancel_build(view, plan, image.id, build.id, name=image.name, cause=cause)
        return
    key = object_key(WORKSPACE, workspace.id)
    if view.is_busy(key) or any(node.step.key == key for node in plan.nodes):
        why = f"Waiting for workspace {workspace.spec.name}, which is being changed."
        plan.findings.append(waits(image, build, why))
        return
    main, _ = containers_of(view, workspace)
    paused = main is not None and main.state == "paused"
    if not (begun and (paused or build.cancel)):
        if not view.desired.settings.enabled or not image.enabled:
            return
        if main and main.state == "running" and main.health == "starting":
            plan.recheck(1.0)
            why = f"Waiting until workspace {workspace.spec.name} is healthy."
            plan.findings.append(waits(image, build, why))
            return
        if view.knows.disk_low:
            plan.findings.append(waits(image, build, view.knows.disk_low))
            return
    plan.add(_step(view, image, build, workspace, main))


def _step(
    view: View,
    image: DesiredImage,
    build: DesiredBuild,
    workspace: DesiredWorkspace,
    main: ObservedContainer | None,
) -> SnapshotImage:
    return SnapshotImage(
        key=object_key(IMAGE, image.id),
        name=image.name,
        cause=f"snapshot of {workspace.spec.name} requested",
        image_id=image.id,
        build_id=build.id,
        ref=image.ref,
        workspace_id=workspace.id,
        workspace_name=workspace.spec.name,
        revision=workspace.revision,
        container_id=main.id if main else "",
        labels=_labels(view, image, build, main),
        blank_env=_secret_names(workspace, main),
        resumed=_was_begun(view, image),
        cancelled=build.cancel,
    )


def _labels(
    view: View, image: DesiredImage, build: DesiredBuild, main: ObservedContainer | None
) -> dict[str, str]:
    """What marks the container as ours, or makes a route to it, must not pass to its image."""
    blank = {
        name: ""
        for name in (main.labels if main else ())
        if name.startswith(naming.RESERVED_LABEL_PREFIXES)
    }
    ours = view.labels_for(IMAGE, naming.LABEL_IMAGE, image.id)
    return {**blank, **ours, naming.LABEL_BUILD: build.id}


def _secret_names(workspace: DesiredWorkspace, main: ObservedContainer | None) -> tuple[str, ...]:
    """Those wanted now and those the container was made with."""
    stored = read_stored(main.labels) if main else None
    names = set(workspace.spec.secret_env) | set(stored.spec.secret_env if stored else ())
    return tuple(sorted(names))


def _clear(view: View, plan: PlanBuilder) -> None:
    """The engine cannot be stopped in the middle of a commit: what it made of one that was given
    up goes, or it would lie there without anybody knowing."""
    at_work = {node.step.key for node in plan.nodes} | view.knows.busy | view.knows.held.keys()
    used = {container.image_id for container in view.observed.containers}
    for found in sorted(view.observed.images, key=lambda i: i.id):
        if naming.LABEL_BUILD not in found.labels or found.id in used:
            continue
        image_id = found.labels.get(naming.LABEL_IMAGE, "")
        if image_id in view.knows.running_builds or object_key(IMAGE, image_id) in at_work:
            continue
        if view.is_signed(found.labels, IMAGE, naming.LABEL_IMAGE):
            _remove_given_up(view, plan, found, image_id)


def _remove_given_up(view: View, plan: PlanBuilder, found: ObservedImage, image_id: str) -> None:
    image = view.desired_images.get(image_id)
    for ref in _given_up(view, found, image):
        if view.image_at(ref) is not found:
            continue
        step = RemoveImage(
            key=object_key(IMAGE, image_id),
            name=image.name if image else image_id,
            cause="left by a snapshot that was given up",
            ref=ref,
            tombstone_id="",
        )
        # Not part of the cleanup, which leaves alone whatever the document still names.
        plan.add(step)


def _given_up(view: View, found: ObservedImage, image: DesiredImage | None) -> tuple[str, ...]:
    """Names under which it is of no use. What is only committed is nobody's data but a stage on
    the way, with the secrets beside it: it goes however its snapshot ended, and with the last
    word of that here, the image as well."""
    build_id, image_id = found.labels[naming.LABEL_BUILD], found.labels[naming.LABEL_IMAGE]
    record = view.knows.builds.get(build_id)
    ref = naming.build_ref(image_id)
    failed = record is not None and record.status in {"failed", "cancelled"}
    if image and image.build and image.build.id == build_id:
        if not is_settled(image.build, build_record(view, image)):
            return ()
    elif image is None and view.knows.hold_removals:
        return ()
    elif record is None or record.image_id != image_id:
        failed = False
    committed = tuple(t for t in found.tags if t.startswith(naming.commit_prefix(ref)))
    # By its id where an engine died between the image and its name.
    return (*committed, ref if found.tags else found.id) if failed else committed


def _was_begun(view: View, image: DesiredImage) -> bool:
    """By an agent that died: this one is not at it."""
    if image.kind != KIND or image.build is None or image.build.done:
        return False
    if image.id in view.knows.running_builds:
        return False
    return build_record(view, image).status == "started"
