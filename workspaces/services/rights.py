"""The facts for `workspaces/rights.py`: what workspaces use, who brought it in, who may what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db.models import Min, Q
from django.utils import timezone

from agent.protocol.subnets import chooses_addresses
from hosts.choices import VolumeKind
from hosts.services.networks import chosen_addresses
from trailer import policy
from trailer.access.models import (
    Capability,
    Grant,
    HostCapability,
    ObjectKind,
    Role,
    live_grants,
    unexpired,
)
from trailer.accounts.models import User
from trailer.errors import Conflict
from workspaces.models import Workspace
from workspaces.rights import Claim, Standing, Use, Uses, asks_people, problems_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from hosts.models import Host, Network, Volume
    from images.models import Image
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields
    from workspaces.rights import Person

BLOCKED: Final = "blocked"


@dataclass(frozen=True, kw_only=True)
class Brought:
    """By whose right a workspace has each thing, and what it was evicted from."""

    image_by: Person = None
    image_evicted: bool = False
    privileged_by: Person = None
    placed_by: Person = None
    # By volume, and whether it is mounted read-only.
    mounts: Mapping[tuple[UUID, bool], Person] = field(default_factory=dict)
    networks: Mapping[UUID, Person] = field(default_factory=dict)
    # Volumes and networks.
    evicted: frozenset[UUID] = frozenset()

    def columns(self) -> dict[str, Any]:
        return {
            "image_by_id": self.image_by,
            "image_evicted": self.image_evicted,
            "privileged_by_id": self.privileged_by,
            "placed_by_id": self.placed_by,
        }


def brought_in(workspace: Workspace) -> Brought:
    mounts, attachments = workspace.mounts.all(), workspace.attachments.all()
    return Brought(
        image_by=workspace.image_by_id,
        image_evicted=workspace.image_evicted,
        privileged_by=workspace.privileged_by_id,
        placed_by=workspace.placed_by_id,
        mounts={(row.volume_id, row.read_only): row.attached_by_id for row in mounts},
        networks={row.network_id: row.attached_by_id for row in attachments},
        evicted=frozenset(
            {row.volume_id for row in mounts if row.evicted}
            | {row.network_id for row in attachments if row.evicted}
        ),
    )


def brought_after(actor: Actor, fields: WorkspaceFields, workspace: Workspace | None) -> Brought:
    """What stays goes on by the right that it came in by; what is new, by the actor's."""
    by = None if actor is None else actor.pk
    if workspace is None:
        return Brought(
            image_by=by,
            privileged_by=by if fields.nested_virtualization else None,
            placed_by=by,
            mounts={(item.volume_id, item.read_only): by for item in fields.mounts},
            networks=dict.fromkeys(fields.networks, by),
        )
    old = brought_in(workspace)
    same_image = workspace.image_id == fields.image
    stays_privileged = workspace.nested_virtualization and fields.nested_virtualization
    there = {network.pk for network in workspace.networks.all()}
    return Brought(
        image_by=old.image_by if same_image else by,
        image_evicted=old.image_evicted and same_image,
        privileged_by=old.privileged_by
        if stays_privileged
        else (by if fields.nested_virtualization else None),
        placed_by=old.placed_by,
        mounts={
            (item.volume_id, item.read_only): _mounted_by(
                old.mounts, item.volume_id, by, read_only=item.read_only
            )
            for item in fields.mounts
        },
        networks={pk: old.networks.get(pk) if pk in there else by for pk in fields.networks},
        evicted=old.evicted & ({item.volume_id for item in fields.mounts} | fields.networks),
    )


def _mounted_by(
    old: Mapping[tuple[UUID, bool], Person], volume_id: UUID, by: Person, *, read_only: bool
) -> Person:
    """Who may write may read; the other way it takes a right of the actor's own."""
    for known in (read_only, False):
        if (volume_id, known) in old:
            return old[volume_id, known]
    return by


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The rows that a workspace's fields point at."""

    image: Image
    volumes: Mapping[UUID, Volume]
    networks: Sequence[Network]


def uses_with(
    brought: Brought, fields: WorkspaceFields, parts: Parts, *, owner: Person, host: Host
) -> Uses:
    """Of fields that nobody has saved yet."""
    return _uses(
        brought,
        owner,
        host,
        parts.image,
        [(parts.volumes[item.volume_id], item.read_only) for item in fields.mounts],
        parts.networks,
        is_privileged=fields.nested_virtualization,
    )


def uses_of(workspace: Workspace, host: Host) -> Uses:
    """Needs parts, attachments and image; makes no query of its own then."""
    return _uses(
        brought_in(workspace),
        workspace.owner_id,
        host,
        workspace.image,
        [(mount.volume, mount.read_only) for mount in workspace.mounts.all()],
        workspace.networks.all(),
        is_privileged=workspace.nested_virtualization,
    )


def _uses(
    brought: Brought,
    owner: Person,
    host: Host,
    image: Image,
    mounts: Iterable[tuple[Volume, bool]],
    networks: Iterable[Network],
    *,
    is_privileged: bool,
) -> Uses:
    def by(person: Person) -> tuple[Person, ...]:
        """Who brought it in first; None is somebody who was deleted, or nobody noted."""
        return tuple(dict.fromkeys(one for one in (person, owner) if one is not None))

    volumes = (
        _volume_use(
            volume,
            by(brought.mounts.get((volume.pk, read_only))),
            read_only=read_only,
            evicted=volume.pk in brought.evicted,
        )
        for volume, read_only in mounts
    )
    others = (
        _network_use(
            network, by(brought.networks.get(network.pk)), evicted=network.pk in brought.evicted
        )
        for network in networks
    )
    of_image = _image_use(image, by(brought.image_by), evicted=brought.image_evicted)
    claims = [Claim(capability=Capability.WORKSPACES, by=by(brought.placed_by))]
    if is_privileged:
        claims.append(Claim(capability=Capability.PRIVILEGED, by=by(brought.privileged_by)))
    return Uses(host_name=host.name, objects=(*volumes, *others, of_image), claims=tuple(claims))


def _volume_use(volume: Volume, by: tuple[Person, ...], *, read_only: bool, evicted: bool) -> Use:
    return Use(
        kind=ObjectKind.VOLUME,
        id=volume.pk,
        name=volume.name,
        owner=volume.owner_id,
        by=by,
        role=Role.VIEWER if read_only else Role.EDITOR,
        evicted=evicted,
        capability=Capability.BIND
        if volume.kind == VolumeKind.BIND and volume.rests_on_capability
        else None,
    )


def _network_use(network: Network, by: tuple[Person, ...], *, evicted: bool) -> Use:
    chooses = network.rests_on_capability and chooses_addresses(chosen_addresses(network))
    return Use(
        kind=ObjectKind.NETWORK,
        id=network.pk,
        name=network.name,
        owner=network.owner_id,
        by=by,
        evicted=evicted,
        capability=Capability.ADDRESSES if chooses else None,
    )


def _image_use(image: Image, by: tuple[Person, ...], *, evicted: bool) -> Use:
    return Use(
        kind=ObjectKind.IMAGE,
        id=image.pk,
        name=image.name,
        owner=image.owner_id,
        by=by,
        evicted=evicted,
        maker=image.made_by_id,
        source=image.source_workspace,
    )


def standing_for(uses: Sequence[Uses], host_id: UUID, now: datetime | None = None) -> Standing:
    """One query for each kind of fact, however many workspaces; none where nothing is borrowed."""
    opened = frozenset(policy.OPEN_CAPABILITIES) if settings.TRAILER_OPEN_HOSTS else frozenset()
    people = {person for one in uses for person in asks_people(one, opened)}
    if not people:
        return Standing(open_capabilities=opened)
    now = now or timezone.now()
    rows = list(User.objects.filter(pk__in=people).prefetch_related("groups"))
    of_group: dict[Any, list[Any]] = {}
    for row in rows:
        for group in row.groups.all():
            of_group.setdefault(group.pk, []).append(row.pk)
    subjects = Q(user__in=people) | Q(group__in=[*of_group])
    borrowed = [use for one in uses for use in one.objects if use.is_borrowed]
    roles, ends = _roles(borrowed, subjects, of_group, now)
    copied, copies_end = _copied(borrowed, rows)
    return Standing(
        names={row.pk: row.username for row in rows},
        active=frozenset(row.pk for row in rows if row.is_active),
        superusers=frozenset(row.pk for row in rows if row.is_superuser),
        roles=roles,
        capabilities=frozenset(
            (person, row.capability)
            for row in HostCapability.objects.filter(subjects, host_id=host_id)
            for person in _people(row, of_group)
        ),
        open_capabilities=opened,
        copied=copied,
        until=min([*ends, *copies_end], default=None),
    )


def _roles(
    borrowed: Sequence[Use], subjects: Q, of_group: Mapping[Any, list[Any]], now: datetime
) -> tuple[dict[tuple[Person, str, UUID], int], list[datetime]]:
    if not borrowed:
        return {}, []
    found: dict[tuple[Person, str, UUID], int] = {}
    ends = []
    ids = {use.id for use in borrowed}
    kinds = {use.kind.value for use in borrowed}
    rows = Grant.objects.filter(subjects, unexpired(now), kind__in=kinds, object_id__in=ids)
    for row in rows.order_by():
        if row.expires_at is not None:
            ends.append(row.expires_at)
        for person in _people(row, of_group):
            key = (person, row.kind, row.object_id)
            found[key] = max(found.get(key, 0), row.role)
    return found, ends


def _copied(
    borrowed: Sequence[Use], people: Sequence[User]
) -> tuple[frozenset[tuple[Person, UUID]], list[datetime]]:
    """Of those who run a snapshot that they took and do not own: three queries for each."""
    taken: dict[Person, set[UUID]] = {}
    for use in borrowed:
        if use.source is not None and use.maker in use.by:
            taken.setdefault(use.maker, set()).add(use.source)
    found: set[tuple[Person, UUID]] = set()
    ends: list[datetime] = []
    for person in people:
        if person.pk not in taken:
            continue
        # nosemgrep: unscoped-read (of the workspaces that are judged)
        may = Workspace.objects.filter(
            policy.permitted("workspace.copy", person), pk__in=taken[person.pk]
        )
        found |= {(person.pk, pk) for pk in may.order_by().values_list("pk", flat=True)}
        for kind in (ObjectKind.WORKSPACE, ObjectKind.STACK):
            end = live_grants(person.pk, kind).aggregate(end=Min("expires_at"))["end"]
            ends += [end] if end is not None else []
    return frozenset(found), ends


def _people(row: Any, of_group: Mapping[Any, list[Any]]) -> list[Person]:
    return [row.user_id] if row.user_id else of_group.get(row.group_id, [])


def rights_problem(uses: Uses, host_id: UUID) -> str:
    """Why this workspace may not get a container now; empty when it may."""
    return " ".join(problems_of(uses, standing_for([uses], host_id)))


def check_rights(uses: Uses, host_id: UUID) -> None:
    problem = rights_problem(uses, host_id)
    if problem:
        raise Conflict(problem, code=BLOCKED)
