"""Images: which builds and pulls to run or end, and whether a workspace's image is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.diff.container import wanted_image
from agent.diff.view import BuildRecord, View, object_key
from agent.engine_requests import BuildRequest, Credential
from agent.plan import BuildFinding, ImageFinding, PlanBuilder
from agent.protocol import image_refs, naming
from agent.protocol.build_secrets import secrets_mark
from agent.protocol.registries import rule_for
from agent.steps import IMAGE, BuildImage, CancelBuild, ClearBuild, PullImage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.observed import ObservedImage
    from agent.protocol.spec import WorkspaceSpec
    from agent.protocol.state import DesiredBuild, DesiredImage, HostState, RegistryCredential

_OPEN = BuildRecord(status="open")
_CANCEL_REQUESTED = "cancel requested"
_DELETED = "image was deleted"
_OVERTAKEN = "a newer build waits"


@dataclass(frozen=True)
class ImageState:
    """The image a container can be made from, or why there is none (`waiting`: not yet)."""

    image: ObservedImage | None = None
    problem: str = ""
    waiting: bool = False


def diff_images(view: View, plan: PlanBuilder) -> None:
    for image in sorted(view.desired.images, key=lambda i: (i.name, i.id)):
        _diff_image(view, plan, image)
    for image_id, build_id in sorted(view.knows.running_builds.items()):
        if image_id not in view.desired_images and image_id not in view.prerequisite_keys:
            cancel_build(view, plan, image_id, build_id, name=image_id, cause=_DELETED)
    _end_abandoned(view, plan)
    _clear_steps(view, plan)


def _end_abandoned(view: View, plan: PlanBuilder) -> None:
    """Begun by an agent that died, and no longer wanted when this one came."""
    wanted = {image.build.id for image in view.desired.images if image.build}
    for build_id, record in sorted(view.knows.builds.items()):
        if record.status != "started" or build_id in wanted:
            continue
        if not _is_free(view, record.image_id):
            continue
        image = view.desired_images.get(record.image_id)
        if image is None and view.knows.hold_removals:
            continue
        name, cause = (image.name, _OVERTAKEN) if image else (record.image_id, _DELETED)
        cancel_build(view, plan, record.image_id, build_id, name=name, cause=cause)


def _clear_steps(view: View, plan: PlanBuilder) -> None:
    building = {node.step.key for node in plan.nodes if isinstance(node.step, BuildImage)}
    for image_id, push_to in sorted(view.knows.loose_steps.items()):
        key = object_key(IMAGE, image_id)
        if key in building or key in view.knows.held or not _is_free(view, image_id):
            continue
        image = view.desired_images.get(image_id)
        step = ClearBuild(
            key=key,
            name=image.name if image else image_id,
            cause="the engine broke off its build",
            image_id=image_id,
            mark=naming.build_mark(view.knows.host_key, image_id, view.knows.host_id),
            push_to=push_to,
        )
        plan.add(step)


def _is_free(view: View, image_id: str) -> bool:
    busy = view.is_busy(object_key(IMAGE, image_id))
    return not busy and image_id not in view.knows.running_builds


def asked_to_end(state: HostState, running_builds: Mapping[str, str]) -> tuple[CancelBuild, ...]:
    """Builds at work that somebody cancelled: a wish that needs no look at the engine."""
    return tuple(
        CancelBuild(
            key=object_key(IMAGE, image.id),
            name=image.name,
            cause=_CANCEL_REQUESTED,
            image_id=image.id,
            build_id=image.build.id,
        )
        for image in state.images
        if image.build and image.build.cancel and running_builds.get(image.id) == image.build.id
    )


def workspace_image(view: View, spec: WorkspaceSpec) -> ImageState:
    found = wanted_image(view, spec)
    image = view.desired_images.get(spec.image_id)
    if found and (spec.image_engine_id or image is None):
        return ImageState(image=found)
    if image is None:
        return ImageState(problem=f"Image {spec.image_ref} is not on this host.")
    record = build_record(view, image)
    if refused := view.knows.refused.get(object_key(IMAGE, image.id)):
        return ImageState(problem=refused)
    if record.status in {"failed", "cancelled"}:
        return ImageState(problem=_failed_sentence(image, record))
    if not is_settled(image.build, record):
        return ImageState(problem=f"Waiting for image {image.name}.", waiting=True)
    if found:
        return ImageState(image=found)
    if image.kind != "pull" or not image.enabled:
        return ImageState(problem=f"Image {image.name} is not on this host; build it again.")
    held = view.knows.held.get(object_key(IMAGE, image.id))
    if held:
        return ImageState(problem=f"Image {image.name} could not be fetched again: {held}")
    return ImageState(problem=f"Waiting for image {image.name}.", waiting=True)


def _diff_image(view: View, plan: PlanBuilder, image: DesiredImage) -> None:
    build, record = image.build, build_record(view, image)
    running = view.knows.running_builds.get(image.id)
    if running is not None:
        _diff_running(view, plan, image, running)
        return
    if view.is_busy(object_key(IMAGE, image.id)):
        return
    if refused := view.knows.refused.get(object_key(IMAGE, image.id)):
        if build and not is_settled(build, record):
            plan.findings.append(_not_begun(image, build, "failed", refused))
        return
    if build and not is_settled(build, record):
        if image.kind == "snapshot":
            # Its turn comes after the workspaces.
            return
        if build.cancel:
            cancel_build(view, plan, image.id, build.id, name=image.name, cause=_CANCEL_REQUESTED)
        elif view.desired.settings.enabled and image.enabled:
            _make(view, plan, image, build)
        return
    _settled_image(view, plan, image, record)


def _diff_running(view: View, plan: PlanBuilder, image: DesiredImage, running: str) -> None:
    """`running` is the id of the build at work, empty for a fetch without a build row."""
    build, name = image.build, image.name
    waiting = build and not build.cancel and not is_settled(build, build_record(view, image))
    if build and build.id != running and waiting:
        plan.findings.append(waits(image, build, "Waiting for the end of the one before."))
    if not running:
        return
    if build is None or build.id != running:
        cancel_build(view, plan, image.id, running, name=name, cause=_OVERTAKEN)
    elif build.cancel:
        cancel_build(view, plan, image.id, build.id, name=name, cause=_CANCEL_REQUESTED)
    elif image.kind == "snapshot" and not _has_source(view, image):
        cancel_build(view, plan, image.id, build.id, name=name, cause="the workspace is gone")


def _settled_image(
    view: View, plan: PlanBuilder, image: DesiredImage, record: BuildRecord
) -> None:
    """Nothing to build: say what is there, and fetch a vanished image that a workspace needs."""
    if record.status in {"failed", "cancelled"}:
        return
    found = kept_image(view, image) or view.image_at(image.ref)
    held = view.knows.held.get(object_key(IMAGE, image.id), "")
    plan.findings.append(
        ImageFinding(
            image_id=image.id,
            present=found is not None,
            engine_id=found.id if found else "",
            digest=digest_of(found, image.ref) if found else "",
            size_bytes=found.size_bytes if found else None,
            message=held,
        )
    )
    needed = any(
        workspace.desired_state == "running"
        and workspace.spec.image_id == image.id
        and wanted_image(view, workspace.spec) is None
        for workspace in view.desired.workspaces
    )
    usable = image.kind == "pull" and image.enabled and view.desired.settings.enabled
    if found is None and needed and usable and not held and not view.knows.disk_low:
        plan.add(
            _pull(view, image, build_id="", cause="vanished from the engine, a workspace needs it")
        )


def kept_image(view: View, image: DesiredImage) -> ObservedImage | None:
    """Return what the server says this image stands for, while the engine has it.

    Another image row may pull the same tag and move it on the engine. That changes nothing here:
    only a pull of this row's own does. While the server has not heard of the end of one, what it
    says is of the pull before.
    """
    if image.build is not None and not image.build.done:
        return None
    known = (view.images_by_ref.get(engine_id) for engine_id in image.keep or ())
    return next((found for found in known if found is not None), None)


def _has_source(view: View, image: DesiredImage) -> bool:
    return image.source_workspace_id in view.desired_workspaces


def _make(view: View, plan: PlanBuilder, image: DesiredImage, build: DesiredBuild) -> None:
    if view.knows.disk_low:
        plan.findings.append(waits(image, build, view.knows.disk_low))
    elif image.kind == "pull":
        plan.add(_pull(view, image, build_id=build.id, cause=f"build {build.number} requested"))
    elif image.kind == "build":
        plan.add(_build(view, image, build))


def _pull(view: View, image: DesiredImage, *, build_id: str, cause: str) -> PullImage:
    forced = image.build is not None and image.build.force
    return PullImage(
        key=object_key(IMAGE, image.id),
        name=image.name,
        cause=cause,
        image_id=image.id,
        build_id=build_id,
        ref=image.ref,
        credential=credential_for(image.ref, image.credential),
        accept_present=image.update_policy == "if_missing" and not forced,
        registries=rule_for(view.desired, image),
    )


def _build(view: View, image: DesiredImage, build: DesiredBuild) -> BuildImage:
    request = BuildRequest(
        ref=image.ref,
        dockerfile=image.dockerfile,
        files=tuple((file.path, file.content) for file in image.files),
        build_args=image.build_args,
        secrets=image.build_secrets,
        secrets_mark=secrets_mark(view.knows.host_key, image.id, image.build_secrets),
        target=image.target,
        pull_base=image.pull_base,
        labels=view.labels_for(IMAGE, naming.LABEL_IMAGE, image.id),
        idle_timeout=max(1, round(view.desired.settings.build_idle_timeout)),
        most_bytes=view.desired.settings.build_context_bytes,
        mark=naming.build_mark(view.knows.host_key, image.id, view.knows.host_id),
    )
    return BuildImage(
        key=object_key(IMAGE, image.id),
        name=image.name,
        cause=f"build {build.number} requested",
        image_id=image.id,
        build_id=build.id,
        request=request,
        credential=_as_credential(image.credential),
        push_to=image.reference if image.push else "",
        push_credential=credential_for(image.reference, image.credential),
        resumed=image.id in view.knows.loose_steps
        or build_record(view, image).status == "started",
        registries=rule_for(view.desired, image),
    )


def cancel_build(
    view: View, plan: PlanBuilder, image_id: str, build_id: str, *, name: str, cause: str
) -> None:
    if build_id in view.knows.cancelling:
        return
    plan.add(
        CancelBuild(
            key=object_key(IMAGE, image_id),
            name=name,
            cause=cause,
            image_id=image_id,
            build_id=build_id,
        )
    )


def credential_for(ref: str, wire: RegistryCredential | None) -> Credential | None:
    """A password goes to the very server it was given for, or nowhere."""
    return _as_credential(wire) if wire and image_refs.credential_fits(ref, wire.server) else None


def _as_credential(wire: RegistryCredential | None) -> Credential | None:
    if wire is None:
        return None
    return Credential(server=wire.server, username=wire.username, password=wire.password)


def digest_of(image: ObservedImage, ref: str) -> str:
    repository = image_refs.name_of(ref)
    for digest in image.digests:
        name, _, value = digest.partition("@")
        if name == repository:
            return value
    return ""


def build_record(view: View, image: DesiredImage) -> BuildRecord:
    return view.knows.builds.get(image.build.id, _OPEN) if image.build else _OPEN


def is_settled(build: DesiredBuild | None, record: BuildRecord) -> bool:
    ended = record.status in {"finished", "failed", "cancelled"}
    return build is None or build.done or ended


def waits(image: DesiredImage, build: DesiredBuild, why: str) -> BuildFinding:
    return _not_begun(image, build, "pending", why)


def _not_begun(image: DesiredImage, build: DesiredBuild, status: str, why: str) -> BuildFinding:
    return BuildFinding(image_id=image.id, build_id=build.id, status=status, message=why)


def _failed_sentence(image: DesiredImage, record: BuildRecord) -> str:
    if record.status == "cancelled":
        return f"Image {image.name} was cancelled; start it again."
    verb = {"pull": "pulled", "build": "built"}.get(image.kind, "made")
    return f"Image {image.name} could not be {verb}: {record.message}"
