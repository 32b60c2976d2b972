"""The state document of one host, compiled from desired columns with a fixed number of queries."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Prefetch, When
from django.utils import timezone

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
from hosts.models import Host, HostDocument, still_holds
from hosts.prerequisites import desired_prerequisites
from hosts.selectors import host_settings
from hosts.services.desired import host_desired_changed
from images.choices import TERMINAL_BUILD_STATUSES, BuildTrigger, ImageKind, RegistryStatus
from images.foreign import must_ask
from images.models import Build, BuildSecret, Image
from images.registries import source_chooser, trusted_servers
from images.selectors import agent_registry, engine_ref
from images.services.secrets import agent_problem, secret_names
from trailer.sealed import seal, unseal
from workspaces.choices import DesiredState
from workspaces.fields import fields_of
from workspaces.rights import problems_of
from workspaces.services.gpus import gpu_problem
from workspaces.services.rights import standing_for, uses_of
from workspaces.spec import WORKSPACE_PARTS, workspace_spec

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from hosts.models import Network, Volume
    from hosts.models import Tombstone as TombstoneRow
    from images.models import Registry
    from workspaces.models import Workspace
    from workspaces.rights import Standing, Uses


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
        .annotate(holds=Case(When(still_holds(timezone.now()), then=True), default=False))
        .values_list("etag", "version", "host__desired_version", "holds")
        .first()
    )
    is_same = stored is not None and stored[1] == stored[2]
    if stored is not None and is_same and stored[3]:
        if stored[0] == known_etag:
            return Document(etag=known_etag, body=None)
        body = HostDocument.objects.values_list("body", flat=True).get(host_id=host_id)
        body = unseal(HostDocument(host_id=host_id, body=body), "body")
        return Document(etag=stored[0], body=body.encode())
    document = _compile_and_store(host_id, may_be_over=is_same)
    if document.etag == known_etag:
        return Document(etag=known_etag, body=None)
    return document


def _compile_and_store(host_id: UUID, *, may_be_over: bool) -> Document:
    """Under the host's row lock: every edit takes it too, so the parts belong together."""
    with transaction.atomic():
        host = Host.objects.select_for_update().get(pk=host_id)
        if may_be_over and document_end(host):
            host.refresh_from_db(fields=["desired_version"])
        state, until = _compiled(host)
        body = encode_state(state)
        etag = content_digest(state)
        HostDocument.objects.update_or_create(
            host=host,
            defaults={
                "version": host.desired_version,
                "etag": etag,
                "body": seal(HostDocument(host=host), "body", body.decode()),
                "until": until,
                "open_hosts": settings.TRAILER_OPEN_HOSTS,
            },
        )
    return Document(etag=etag, body=body)


def document_end(host: Host) -> bool:
    """Under the host's lock. Nobody edited anything, but a right that its document rests on has
    ended: that is a change, too."""
    same = HostDocument.objects.filter(host=host, version=host.desired_version)
    is_over = same.exclude(still_holds(timezone.now())).exists()
    if is_over:
        host_desired_changed(host.pk)
    return is_over


def documents_end(now: datetime) -> int:
    """Those of all hosts whose grants have ended: their agents hear of it now."""
    over = HostDocument.objects.filter(version=F("host__desired_version")).exclude(
        still_holds(now)
    )
    ended = 0
    for host_id in list(over.values_list("host_id", flat=True)):
        with transaction.atomic():
            host = Host.objects.select_for_update().filter(pk=host_id).first()
            ended += host is not None and document_end(host)
    return ended


def content_digest(state: HostState) -> str:
    """Without the counter: a touched document with equal content is no news to the agent."""
    return hashlib.sha256(encode_state(msgspec.structs.replace(state, version=0))).hexdigest()


def host_state(host: Host) -> HostState:
    return _compiled(host)[0]


def _compiled(host: Host) -> tuple[HostState, datetime | None]:
    """And when it is over by itself, because a grant ends."""
    # nosemgrep: unscoped-read (of the host that asks)
    builds = Prefetch("builds", queryset=Build.objects.order_by("-number"))
    rows = host.images.select_related("registry", "owner", "source_by")
    # nosemgrep: unscoped-read (of the host that asks)
    names = Prefetch("build_secrets", queryset=BuildSecret.objects.only("image_id", "name"))
    images = list(rows.prefetch_related(builds, names).order_by("id"))
    secrets = _build_secrets(images, host)
    workspaces, until = _workspaces(host)
    wished = host_settings(host)
    state = HostState(
        host_id=str(host.id),
        protocol=PROTOCOL_VERSION,
        state_epoch=host.state_epoch,
        version=host.desired_version,
        settings=wished,
        networks=tuple(_network(row) for row in host.networks.order_by("id")),
        volumes=tuple(_volume(row) for row in host.volumes.order_by("id")),
        images=tuple(_image(row, images, host, secrets.get(row.pk, {})) for row in images),
        workspaces=workspaces,
        tombstones=tuple(_tombstone(row) for row in host.tombstones.order_by("id")),
        registry_tests=_registry_tests(host),
        restored=host.state_restored,
        prerequisites=desired_prerequisites(wished),
        agent_credential=_agent_credential(host),
        trusted_registries=trusted_servers(),
    )
    return state, until


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


def _workspaces(host: Host) -> tuple[tuple[DesiredWorkspace, ...], datetime | None]:
    """And when the first grant ends that any of them needs."""
    rows_of = host.workspaces.select_related("image").order_by("id")
    rows = list(rows_of.prefetch_related(*WORKSPACE_PARTS, "attachments"))
    running = [row for row in rows if row.desired_state == DesiredState.RUNNING]
    uses = {row.pk: uses_of(row, host) for row in running}
    standing = standing_for(list(uses.values()), host.pk)
    return tuple(
        _workspace(row, blocked=_blocked(row, host, uses.get(row.pk), standing)) for row in rows
    ), standing.until


def _blocked(row: Workspace, host: Host, uses: Uses | None, standing: Standing) -> str:
    problem = " ".join(problems_of(uses, standing)) if uses is not None else ""
    if problem or not row.gpus:
        return problem
    return gpu_problem(fields_of(row), host, row)


def _workspace(row: Workspace, *, blocked: str) -> DesiredWorkspace:
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
        blocked=blocked,
    )


def _tombstone(row: TombstoneRow) -> Tombstone:
    return Tombstone(id=str(row.id), kind=row.kind, object_id=str(row.object_id), name=row.name)
