"""The state document of one host, compiled from desired columns with a fixed number of queries."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.db import transaction
from django.db.models import Prefetch

from agent.protocol import PROTOCOL_VERSION
from agent.protocol.state import (
    BuildFile,
    DesiredBuild,
    DesiredImage,
    DesiredNetwork,
    DesiredRegistryTest,
    DesiredVolume,
    DesiredWorkspace,
    HostState,
    RegistryCredential,
    Tombstone,
    encode_state,
)
from hosts.models import Host, HostDocument
from hosts.prerequisites import desired_prerequisites
from hosts.selectors import host_settings
from images.choices import TERMINAL_BUILD_STATUSES, BuildTrigger, ImageKind, RegistryStatus
from images.foreign import must_ask
from images.models import Build, BuildSecret, Image
from images.registries import source_chooser, trusted_servers
from images.selectors import agent_registry, engine_ref
from images.services.secrets import agent_problem, secret_names
from trailer.sealed import seal, unseal
from workspaces.fields import fields_of
from workspaces.services.gpus import gpu_problem
from workspaces.spec import WORKSPACE_PARTS, workspace_spec

if TYPE_CHECKING:
    from uuid import UUID

    from hosts.models import Network, Volume
    from hosts.models import Tombstone as TombstoneRow
    from images.models import Registry
    from workspaces.models import Workspace


_FORCING_TRIGGERS = frozenset({BuildTrigger.REQUESTED, BuildTrigger.UPDATE})


@dataclass(frozen=True)
class Document:
    etag: str
    # None when the caller already holds this version.
    body: bytes | None


def document_for(host_id: UUID, known_etag: str) -> Document:
    """One look-up while nothing changes; compiled and stored again after an edit."""
    stored = (
        HostDocument.objects.filter(host_id=host_id)
        .values_list("etag", "version", "host__desired_version")
        .first()
    )
    if stored is not None and stored[1] == stored[2]:
        if stored[0] == known_etag:
            return Document(etag=known_etag, body=None)
        body = HostDocument.objects.values_list("body", flat=True).get(host_id=host_id)
        body = unseal(HostDocument(host_id=host_id, body=body), "body")
        return Document(etag=stored[0], body=body.encode())
    document = _compile_and_store(host_id)
    if document.etag == known_etag:
        return Document(etag=known_etag, body=None)
    return document


def _compile_and_store(host_id: UUID) -> Document:
    """Under the host's row lock: every edit takes it too, so the parts belong together."""
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host_id)
        state = host_state(host)
        body = encode_state(state)
        etag = content_digest(state)
        HostDocument.objects.update_or_create(
            host=host,
            defaults={
                "version": host.desired_version,
                "etag": etag,
                "body": seal(HostDocument(host=host), "body", body.decode()),
            },
        )
    return Document(etag=etag, body=body)


def content_digest(state: HostState) -> str:
    """Without the counter: a touched document with equal content is no news to the agent."""
    return hashlib.sha256(encode_state(msgspec.structs.replace(state, version=0))).hexdigest()


def host_state(host: Host) -> HostState:
    # nosemgrep: unscoped-read (of the host that asks)
    builds = Prefetch("builds", queryset=Build.objects.order_by("-number"))
    rows = host.images.select_related("registry", "owner", "source_by")
    # nosemgrep: unscoped-read (of the host that asks)
    names = Prefetch("build_secrets", queryset=BuildSecret.objects.only("image_id", "name"))
    images = list(rows.prefetch_related(builds, names).order_by("id"))
    secrets = _build_secrets(images, host)
    workspaces = (
        host.workspaces.select_related("image").prefetch_related(*WORKSPACE_PARTS).order_by("id")
    )
    wished = host_settings(host)
    return HostState(
        host_id=str(host.id),
        protocol=PROTOCOL_VERSION,
        state_epoch=host.state_epoch,
        version=host.desired_version,
        settings=wished,
        networks=tuple(_network(row) for row in host.networks.order_by("id")),
        volumes=tuple(_volume(row) for row in host.volumes.order_by("id")),
        images=tuple(_image(row, images, host, secrets.get(row.pk, {})) for row in images),
        workspaces=tuple(_workspace(row, host) for row in workspaces),
        tombstones=tuple(_tombstone(row) for row in host.tombstones.order_by("id")),
        registry_tests=_registry_tests(host),
        restored=host.state_restored,
        prerequisites=desired_prerequisites(wished),
        agent_credential=_agent_credential(host),
        trusted_registries=trusted_servers(),
    )


def _network(row: Network) -> DesiredNetwork:
    return DesiredNetwork(
        id=str(row.id),
        name=row.name,
        driver=row.driver,
        internal=row.internal,
        parent_interface=row.parent_interface,
        subnet=row.subnet,
        gateway=row.gateway,
        ip_range=row.ip_range,
        revision=row.revision,
    )


def _volume(row: Volume) -> DesiredVolume:
    return DesiredVolume(
        id=str(row.id), name=row.name, kind=row.kind, source=row.source, revision=row.revision
    )


def _build_secrets(images: list[Image], host: Host) -> dict[UUID, dict[str, str]]:
    """In the clear, of those images alone that are to be built now."""
    building = [
        row.pk
        for row in images
        if row.builds.all()
        and row.builds.all()[0].status not in TERMINAL_BUILD_STATUSES
        and secret_names(row)
        and not agent_problem(host, secret_names(row))
    ]
    found: dict[UUID, dict[str, str]] = {}
    # nosemgrep: unscoped-read (of the host that asks)
    for row in BuildSecret.objects.filter(image__in=building) if building else ():
        found.setdefault(row.image_id, {})[row.name] = unseal(row, "value_token")
    return found


def _image(row: Image, images: list[Image], host: Host, secrets: dict[str, str]) -> DesiredImage:
    builds = row.builds.all()
    current = builds[0] if builds else None
    is_done = current is not None and current.status in TERMINAL_BUILD_STATUSES
    asks = not is_done and must_ask(row, images)
    # From an agent that would build without its secrets.
    is_withheld = bool(agent_problem(host, secret_names(row)))
    return DesiredImage(
        id=str(row.id),
        name=row.name,
        kind=row.kind,
        ref=engine_ref(row),
        reference=row.reference,
        dockerfile=row.dockerfile,
        files=tuple(BuildFile(path=f["path"], content=f["content"]) for f in row.files),
        build_args=row.build_args,
        build_secrets=secrets,
        target=row.target,
        pull_base=row.pull_base or (asks and row.kind == ImageKind.BUILD),
        update_policy=row.update_policy,
        push=row.push,
        enabled=row.enabled and not is_withheld,
        credential=None if row.registry is None else _credential(row.registry),
        source_workspace_id=str(row.source_workspace or ""),
        check=row.check_requested,
        keep=((row.engine_id,) if row.engine_id else ()) if row.kind == ImageKind.PULL else None,
        build=None
        if current is None
        else DesiredBuild(
            id=str(current.id),
            number=current.number,
            cancel=current.cancel_requested,
            force=asks or _is_forced(row, current),
            done=is_done,
        ),
        trusted_source=source_chooser(row).is_admin,
        revision=row.revision,
    )


def _is_forced(row: Image, build: Build) -> bool:
    """An older image that the host still has must not pass for what is pulled again."""
    if build.trigger == BuildTrigger.RETRY:
        return bool(row.engine_id)
    return build.trigger in _FORCING_TRIGGERS


def _registry_tests(host: Host) -> tuple[DesiredRegistryTest, ...]:
    rows = host.registry_tests.filter(status=RegistryStatus.TESTING).order_by("id")
    return tuple(
        DesiredRegistryTest(id=str(row.id), credential=_credential(row.registry))
        for row in rows.select_related("registry")
    )


def _agent_credential(host: Host) -> RegistryCredential | None:
    registry = agent_registry(host)
    return None if registry is None else _credential(registry)


def _credential(registry: Registry) -> RegistryCredential:
    return RegistryCredential(
        server=registry.server,
        username=registry.username,
        password=unseal(registry, "password_token"),
    )


def _workspace(row: Workspace, host: Host) -> DesiredWorkspace:
    return DesiredWorkspace(
        id=str(row.id),
        revision=row.revision,
        desired_state=row.desired_state,
        spec=workspace_spec(row),
        startup_timeout=row.startup_timeout,
        drain_timeout=row.drain_timeout,
        shared_volumes=row.shared_volumes,
        stack_id=str(row.stack) if row.stack else "",
        service=row.service,
        blocked=gpu_problem(fields_of(row), host, row) if row.gpus else "",
    )


def _tombstone(row: TombstoneRow) -> Tombstone:
    return Tombstone(id=str(row.id), kind=row.kind, object_id=str(row.object_id), name=row.name)
