"""Services become workspaces: one is written at a time, and only where something differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import transaction

from trailer.errors import ApplicationError
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace
from workspaces.services.change import change_prepare, change_retry, change_save
from workspaces.services.create import workspace_insert
from workspaces.services.delete import workspace_remove
from workspaces.services.ledger import UserEvent
from workspaces.services.locking import workspace_lock
from workspaces.stacks.sync.names import workspace_name
from workspaces.stacks.sync.places import image_key
from workspaces.stacks.sync.work import SyncProblem
from workspaces.status import workspace_status
from workspaces.validation.fields import fields_for_create

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from workspaces.fields import WorkspaceFields
    from workspaces.services.change import Change
    from workspaces.stacks.file.types import DomainSpec, ServiceSpec, VolumeMount
    from workspaces.stacks.models import Stack
    from workspaces.stacks.sync.places import Places


@dataclass(frozen=True, kw_only=True)
class Order:
    """On whose behalf, and since when: what failed before that is tried once more. `insists`:
    somebody asked for it, so also what costs an interruption."""

    stack: Stack
    places: Places
    cause: str
    since: datetime
    insists: bool = False


class _Rehearsed(Exception):
    """Undoes what was only tried."""


def rehearse(order: Order, services: Iterable[ServiceSpec], names: set[str]) -> None:
    """Everything that applying would refuse is refused here, and nothing is kept."""
    try:
        with transaction.atomic():
            wanted = tuple(services)
            remove_in_the_way(order.stack, wanted, names)
            for service in wanted:
                write(order, service)
            raise _Rehearsed
    except _Rehearsed:
        return


def write(order: Order, service: ServiceSpec) -> str:
    """Inside the caller's transaction. What was done, as a sentence; empty when nothing was."""
    try:
        return _write(order, service)
    except ApplicationError as error:
        raise SyncProblem(f"Service {service.name}: {error.message}") from error


def planned_change(order: Order, workspace: Workspace, service: ServiceSpec) -> Change:
    """What writing the service would do; inside the caller's transaction."""
    current = workspace_lock(workspace, expected_revision=None)
    fields = _fields(order, service)
    return change_prepare(actor=order.stack.owner, workspace=current, fields=fields)


def workspace_of(stack: Stack, service_name: str) -> Workspace | None:
    return Workspace.objects.filter(stack=stack.pk, service=service_name).first()


def remove_others(stack: Stack, names: set[str]) -> list[str]:
    """Containers of services that the file no longer has; volumes stay."""
    gone = Workspace.objects.filter(stack=stack.pk).exclude(service__in=names)
    return [_remove(stack, workspace) for workspace in gone.order_by("service")]


def remove_in_the_way(stack: Stack, services: Iterable[ServiceSpec], names: set[str]) -> list[str]:
    """Of those, the ones that hold a port or an address that a service of the file now wants."""
    ports = {port.host_port for service in services for port in service.ports if port.host_port}
    hosts = {domain.host_name for service in services for domain in service.domains}
    gone = Workspace.objects.filter(stack=stack.pk).exclude(service__in=names)
    return [
        _remove(stack, workspace)
        for workspace in gone.prefetch_related("ports", "urls").order_by("service")
        if ports & {port.host_port for port in workspace.ports.all()}
        or hosts & {f"{url.subdomain}.{url.domain}" for url in workspace.urls.all()}
    ]


def _remove(stack: Stack, workspace: Workspace) -> str:
    current = workspace_lock(workspace, expected_revision=None)
    workspace_remove(current, actor=stack.owner)
    return workspace.service


def _write(order: Order, service: ServiceSpec) -> str:
    stack = order.stack
    fields = _fields(order, service)
    existing = workspace_of(stack, service.name)
    if existing is None:
        workspace_insert(
            stack.owner,
            fields,
            kind=UserEvent.CREATED,
            cause=order.cause,
            stack_id=stack.pk,
            service=service.name,
        )
        return f"Service {service.name}: created."
    current = workspace_lock(existing, expected_revision=None)
    change = change_prepare(actor=stack.owner, workspace=current, fields=fields)
    if not change.changes:
        if not _is_due_again(order, current):
            return ""
        change = change_retry(current)
        told = "tried again"
    else:
        told = "changed: " + ", ".join(dict.fromkeys(item.field for item in change.changes))
    change_save(change, actor=stack.owner, kind=UserEvent.CHANGED, cause=f"{order.cause} {told}.")
    return f"Service {service.name}: {told}."


def _is_due_again(order: Order, workspace: Workspace) -> bool:
    """Not where the old container still runs because its replacement did not come up: each try
    stops it, and a poll would do that for ever."""
    status = workspace_status(workspace)
    if workspace.updated_at >= order.since:
        return False
    runs = bool(workspace.container_id) and workspace.exit_code is None
    if status == WorkspaceStatus.ERROR:
        return order.insists or not runs
    return status == WorkspaceStatus.STOPPED


def _fields(order: Order, service: ServiceSpec) -> WorkspaceFields:
    """Through the same door as a person's input: the same limits, the same sentences."""
    places = order.places
    data: dict[str, Any] = {
        "name": workspace_name(order.stack, service.name),
        "host": str(order.stack.host_id),
        "image": str(places.images[image_key(service)]),
        "command": list(service.command),
        "env": dict(service.environment),
        "secret_env": {
            name: secret.reveal() for name, secret in service.secret_environment.items()
        },
        "cpus": service.cpus,
        "memory_bytes": service.memory_bytes,
        "shm_bytes": service.shm_bytes,
        "gpus": None if service.gpus is None else _gpus(service),
        "ports": [msgspec.to_builtins(port) for port in service.ports],
        "mounts": [_mount(mount, places) for mount in service.mounts],
        "networks": [str(places.networks[key]) for key in service.networks],
        "urls": [_url(domain) for domain in service.domains],
        "health_check": None
        if service.health_check is None
        else msgspec.to_builtins(service.health_check),
        "startup_timeout": service.startup_timeout,
        "drain_timeout": service.drain_timeout,
        "shared_volumes": service.shared_volumes,
        "labels": dict(service.labels),
    }
    return fields_for_create(data)


def _gpus(service: ServiceSpec) -> dict[str, Any]:
    gpus = service.gpus
    if gpus is not None and gpus.device_ids:
        return {"device_ids": list(gpus.device_ids)}
    return {"count": gpus.count if gpus is not None else 0}


def _mount(mount: VolumeMount, places: Places) -> dict[str, Any]:
    return {
        "volume": str(places.volumes[mount.volume or mount.host_path]),
        "target": mount.target,
        "read_only": mount.read_only,
    }


def _url(domain: DomainSpec) -> dict[str, Any]:
    subdomain, _, rest = domain.host_name.partition(".")
    return {
        "subdomain": subdomain,
        "domain": rest,
        "port": domain.port,
        "tls": domain.tls,
        "auth": domain.auth,
    }
