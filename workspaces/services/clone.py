"""A new workspace with the fields of another one, on the same or on another host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import transaction

from images.choices import ImageKind
from images.models import Image
from images.selectors import engine_ref
from trailer import policy
from trailer.errors import Invalid
from trailer.revisions import check_revision
from workspaces.fields import fields_of
from workspaces.gpus import GpuWish
from workspaces.selectors import workspace_get
from workspaces.services.create import workspace_insert
from workspaces.services.ledger import UserEvent
from workspaces.services.locking import host_lock
from workspaces.validation.fields import check_known, clean_name
from workspaces.validation.scalars import identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hosts.models import Host
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace


def workspace_clone(
    *,
    actor: Actor,
    workspace: Workspace,
    data: Mapping[str, Any],
    expected_revision: int | None = None,
) -> Workspace:
    """`data` holds the new name and, if it is to be another one, the host.

    Cloning copies secrets into something the actor owns, and runs commands of its own beside them:
    it takes the right terminal.
    """
    policy.require(actor, "workspace.copy", workspace)
    policy.require(actor, "workspace.create")
    check_known(data, ("name", "host"))
    if data.get("name") is None:
        raise Invalid.field("name", "name is required.")
    name, host_id = clean_name(data["name"], "name"), workspace.host_id
    if data.get("host") is not None:
        host_id = identifier(data["host"], "host")
    with transaction.atomic():
        host = host_lock(actor, host_id)
        source = workspace_get(workspace.pk)
        # It may have been handed over, or the right taken back, while this waited.
        policy.require(actor, "workspace.copy", source)
        check_revision(source.revision, expected_revision)
        fields = _copied(actor, source, host, name=name)
        cause = f"Cloned from {source.name}."
        return workspace_insert(actor, fields, kind=UserEvent.CLONED, cause=cause)


def _copied(actor: Actor, source: Workspace, host: Host, *, name: str) -> WorkspaceFields:
    """An address belongs to one workspace: URLs stay behind, and so does what the host lacks."""
    fields = replace(fields_of(source), name=name, urls=())
    if fields.gpus is not None and fields.gpus.device_ids:
        # Those cards are the source's, or another host's: as many others will do.
        many = GpuWish(count=len(fields.gpus.device_ids), shared=fields.gpus.shared)
        fields = replace(fields, gpus=many)
    if host.pk == source.host_id:
        # The source holds its host ports: the engine picks new ones.
        free = {msgspec.structs.replace(port, host_port=None) for port in fields.ports}
        return replace(fields, ports=tuple(sorted(free, key=_port_key)))
    return replace(
        fields,
        host=host.pk,
        image=_same_image(actor, source.image, host).pk,
        mounts=(),
        networks=frozenset(),
    )


def _port_key(port: Any) -> tuple[int, str, str]:
    return (port.container_port, port.protocol, port.host_ip)


def _same_image(actor: Actor, image: Image, host: Host) -> Image:
    if image.kind != ImageKind.PULL:
        raise Invalid.field(
            "host",
            f"The image {image.name} is of kind {image.kind} and exists only on its own host. "
            "Clone on the same host, or change to a pulled image first.",
        )
    candidates = Image.objects.usable_by(actor).filter(
        host=host, kind=ImageKind.PULL, enabled=True
    )
    wanted = engine_ref(image)
    found = next((other for other in candidates if engine_ref(other) == wanted), None)
    if found is None:
        raise Invalid.field(
            "host",
            f"The host {host.name} has no image with the reference {wanted}. "
            "Add it there first, or clone on the same host.",
        )
    return found
