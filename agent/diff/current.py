"""What a workspace has on the engine, and how that differs from what it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.diff.routing import routing_changes
from agent.diff.stored import changes_since, read_stored
from agent.protocol import naming
from agent.protocol.spec import EVERY_IPV4

if TYPE_CHECKING:
    from agent.diff.view import View
    from agent.observed import ObservedContainer
    from agent.protocol.report import FieldChange
    from agent.protocol.spec import PortSpec
    from agent.protocol.state import DesiredWorkspace


def containers_of(
    view: View, workspace: DesiredWorkspace
) -> tuple[ObservedContainer | None, tuple[ObservedContainer, ...]]:
    """The workspace's container (by name, else the one the journal knows) and the others."""
    owned = view.owned_containers.get(workspace.id, ())
    name = naming.container_name(workspace.spec.name)
    known = view.knows.containers.get(workspace.id, "")
    main = next((c for c in owned if c.name == name), None)
    plain = [c for c in owned if not _is_spare(workspace, c)]
    main = main or next((c for c in plain if c.id == known), None)
    main = main or next(iter(plain), None)
    return main, tuple(c for c in owned if c is not main)


def _is_spare(workspace: DesiredWorkspace, container: ObservedContainer) -> bool:
    """Whether its name is one that a new container has until the old one is gone. It was made
    under the name that its workspace had then, which may have been `web-next` itself."""
    stored = read_stored(container.labels)
    usual = naming.next_container_name(stored.spec.name if stored else workspace.spec.name)
    return container.name in {usual, naming.spare_container_name(workspace.id)}


def changes_of(
    view: View, workspace: DesiredWorkspace, container: ObservedContainer
) -> tuple[FieldChange, ...]:
    stored = read_stored(container.labels)
    wanted = workspace.spec
    if stored is not None:
        image_id = _image_id(view, workspace, stored.spec.image_engine_id)
        ports = _as_published(wanted.ports, stored.spec.ports, container)
        wanted = msgspec.structs.replace(wanted, image_engine_id=image_id, ports=ports)
    changes = changes_since(
        stored,
        wanted,
        revision=workspace.revision,
        host_key=view.knows.host_key,
        router_mode=view.desired.settings.router.mode,
    )
    if stored is None or any(change.field == "urls" for change in changes):
        return changes
    return changes + routing_changes(view, workspace, container, revision=stored.revision)


def _as_published(
    wanted: tuple[PortSpec, ...], stored: tuple[PortSpec, ...], container: ObservedContainer
) -> tuple[PortSpec, ...]:
    """Spell 0.0.0.0 as the container's label does where that makes no difference on the host: no
    address was asked for, and the engine published on IPv4 alone. The other way round nothing
    shows whether a new container would have IPv6, too."""

    def as_stored(port: PortSpec) -> PortSpec:
        open_to_all = msgspec.structs.replace(port, host_ip="")
        is_there = (port.container_port, port.protocol) in container.ipv4_only_ports
        is_same = port.host_ip == EVERY_IPV4 and is_there and open_to_all in stored
        return open_to_all if is_same else port

    return tuple(as_stored(port) for port in wanted)


def is_made_for(view: View, workspace: DesiredWorkspace, container: ObservedContainer) -> bool:
    """Whether it was made from what is wanted now, whatever became of it."""
    stored = read_stored(container.labels)
    return stored is not None and not changes_of(view, workspace, container)


def _image_id(view: View, workspace: DesiredWorkspace, current: str) -> str:
    """The engine id to compare with; one the engine does not have cannot be asked for."""
    wanted = workspace.spec.image_engine_id
    if not wanted or wanted == current or wanted in view.images_by_ref:
        return wanted
    here = view.image_at(workspace.spec.image_ref)
    return here.id if here else current


def was_edited(view: View, workspace: DesiredWorkspace, container: ObservedContainer) -> bool:
    """True while the newest revision was never fully in place here: a difference is then a wish;
    afterwards it is drift."""
    stored = read_stored(container.labels)
    applied = view.knows.applied.get(workspace.id, stored.revision if stored else 0)
    return applied != workspace.revision
