"""Rules that need to know the host: its size, and what its other workspaces hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trailer.errors import Invalid
from workspaces.validation.parts import port_overlaps, port_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.protocol.spec import PortSpec
    from hosts.models import Host
    from workspaces.fields import WorkspaceFields


def check_size(fields: WorkspaceFields, host: Host) -> None:
    """A host that was never seen has no known limits; its agent will say what is too much."""
    if fields.memory_bytes and host.memory_bytes and fields.memory_bytes > host.memory_bytes:
        raise Invalid.field(
            "memory_bytes",
            f"memory_bytes is more than the host {host.name} has ({host.memory_bytes} bytes).",
        )
    if fields.cpus and host.cpu_count and fields.cpus > host.cpu_count:
        raise Invalid.field(
            "cpus", f"cpus is more than the host {host.name} has ({host.cpu_count})."
        )


def check_virtualization(host: Host) -> None:
    """A host that was never heard may have it; its agent will say."""
    if host.capabilities and "nested_virtualization" not in host.capabilities:
        raise Invalid.field(
            "nested_virtualization",
            f"Nested virtualisation needs /dev/kvm, which the host {host.name} does not have. "
            "Turn on virtualisation in its firmware, or take another host.",
        )


def check_ports(ports: Iterable[PortSpec], held: Iterable[tuple[PortSpec, str]]) -> None:
    """`held`: fixed host ports of the host's other workspaces, with the names of those that the
    reader may see; empty for the rest."""
    held = list(held)
    for n, port in enumerate(ports):
        if port.host_port is None:
            continue
        holder = next((name for other, name in held if port_overlaps(port, other)), None)
        if holder is not None:
            who = f"the workspace {holder}" if holder else "another workspace"
            raise Invalid.field(
                f"ports.{n}.host_port",
                f"{port_text(port)} is already held by {who} on this host. "
                "Take another one, or none to let the engine choose.",
            )


def check_name(name: str, taken: Iterable[str]) -> None:
    """`taken`: names of the host's other workspaces that could clash with this one.

    While a container is replaced, its successor is called `<name>-next`: no other workspace may
    hold that name meanwhile.
    """
    for other in taken:
        if other == name:
            raise Invalid.field("name", f"There is already a workspace {name} on this host.")
        if other in (f"{name}-next", name.removesuffix("-next")):
            # Which one it is, is nobody's business who may not see it.
            raise Invalid.field(
                "name",
                f"{name} is too close to a name that is taken on this host: '-next' is added "
                "to a name while its container is replaced.",
            )
