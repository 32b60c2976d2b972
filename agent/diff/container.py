"""From a desired workspace to the container the engine is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.diff.routing import labels_for_router
from agent.diff.stored import spec_labels
from agent.engine_requests import ContainerRequest
from agent.protocol import naming
from agent.protocol.compare import normalise, replaces_without_downtime
from agent.steps import WORKSPACE

if TYPE_CHECKING:
    from agent.diff.view import View
    from agent.observed import ObservedImage
    from agent.protocol.spec import WorkspaceSpec
    from agent.protocol.state import DesiredWorkspace


def container_request(
    view: View, workspace: DesiredWorkspace, image: ObservedImage, *, name: str
) -> ContainerRequest:
    spec = with_image_id(normalise(workspace.spec), image)
    return ContainerRequest(
        name=name,
        image=image_name(view, spec, image),
        hostname=hostname(workspace),
        command=spec.command,
        env={**spec.env, **spec.secret_env},
        labels=container_labels(view, workspace, spec, image),
        nano_cpus=nano_cpus(spec),
        memory_bytes=spec.memory_bytes or 0,
        shm_bytes=spec.shm_bytes or 0,
        ports=spec.ports,
        mounts=spec.mounts,
        gpus=spec.gpus,
        nested_virtualization=spec.nested_virtualization,
        health_check=spec.health_check,
    )


def hostname(workspace: DesiredWorkspace) -> str:
    """The workspace's name, except where two containers of it run side by side during a replace:
    the engine's DNS answers to hostnames too, and callers must not find the one not ready yet."""
    name = workspace.spec.name
    if not replaces_without_downtime(workspace.spec, shared_volumes=workspace.shared_volumes):
        return name
    suffix = f"-r{workspace.revision}"
    return f"{name[: 63 - len(suffix)]}{suffix}"


def network_alias(workspace: DesiredWorkspace) -> str:
    """What others on its networks call it: a stack's services find each other by service name."""
    return workspace.service or workspace.spec.name


def container_labels(
    view: View, workspace: DesiredWorkspace, spec: WorkspaceSpec, image: ObservedImage
) -> dict[str, str]:
    """Ours come last: neither a user label nor one inherited from the image may stand for ours."""
    labels = dict(spec.labels)
    labels.update(labels_for_router(view, workspace, image.labels))
    labels.update(view.labels_for(WORKSPACE, naming.LABEL_WORKSPACE, workspace.id))
    labels.update(spec_labels(spec, revision=workspace.revision, host_key=view.knows.host_key))
    if workspace.stack_id:
        labels[naming.LABEL_STACK] = workspace.stack_id
        labels[naming.LABEL_SERVICE] = workspace.service
    return labels


def with_image_id(spec: WorkspaceSpec, image: ObservedImage) -> WorkspaceSpec:
    return msgspec.structs.replace(spec, image_engine_id=image.id)


def image_name(view: View, spec: WorkspaceSpec, image: ObservedImage) -> str:
    """The reference while it still means that image, else the image's id."""
    current = view.image_at(spec.image_ref)
    return spec.image_ref if current and current.id == image.id else image.id


def nano_cpus(spec: WorkspaceSpec) -> int:
    return round((spec.cpus or 0) * 1_000_000_000)


def wanted_image(view: View, spec: WorkspaceSpec) -> ObservedImage | None:
    """The image a new container would be made from: the one the server names if the engine has it,
    else whatever the reference means here."""
    if spec.image_engine_id:
        exact = view.images_by_ref.get(spec.image_engine_id)
        if exact:
            return exact
    return view.image_at(spec.image_ref)
