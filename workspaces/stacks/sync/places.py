"""What services stand on: networks, volumes and images, made when missing, never changed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.protocol import image_refs
from hosts.choices import VolumeKind
from hosts.models import Network, Volume
from hosts.services.networks import network_create
from hosts.services.volumes import volume_create
from images.choices import ImageKind
from images.models import Image
from images.services.images import image_create, image_update
from workspaces.stacks.file.types import DEFAULT_NETWORK
from workspaces.stacks.models import Stack, StackImage, StackNetwork, StackVolume
from workspaces.stacks.sync import names
from workspaces.stacks.sync.vouching import Vouched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from workspaces.stacks.file.types import ServiceSpec, StackFile
    from workspaces.stacks.models import StackRevision

_IMAGE_NAME_LIMIT = 128

# Reference and update policy.
ImageKey = tuple[str, str]


def image_key(service: ServiceSpec) -> ImageKey:
    return service.image, service.update_policy


@dataclass(frozen=True, kw_only=True)
class Places:
    """Ids by the file's words: image reference with its update policy, volume key or host path,
    network key."""

    images: Mapping[ImageKey, UUID]
    volumes: Mapping[str, UUID]
    networks: Mapping[str, UUID]


def places_of(
    stack: Stack, revision: StackRevision, file: StackFile, services: Iterable[ServiceSpec]
) -> Places:
    """Needs the stack with its host and owner; everything is made in the owner's name."""
    wanted = tuple(services)
    vouched = Vouched(stack, revision.source_by)
    return Places(
        images=images_of(vouched, {image_key(service) for service in wanted}),
        volumes={place: volume.pk for place, volume in _volumes(vouched, file, wanted).items()},
        networks={
            key: _network(vouched, file, key).pk
            for key in sorted({key for service in wanted for key in service.networks})
        },
    )


def own_volume(vouched: Vouched, key: str) -> Volume:
    """`<stack>-<key>`, or another name where that is taken; it outlives its service and the stack,
    until somebody deletes it. One that an earlier stack of this name left, or that the owner made
    by hand, is taken over only for whom its data is."""
    stack = vouched.stack
    of_key = StackVolume.objects.select_related("volume").filter(
        volume__host=stack.host_id,
        volume__owner=stack.owner_id,
        volume__kind=VolumeKind.VOLUME,
        stack_name=stack.name,
        key=key,
    )
    used = of_key.filter(used_by=stack.pk).first()
    if used is not None:
        return used.volume
    left = of_key.order_by("pk").first()
    if left is not None and vouched.may_write(left.volume):
        StackVolume.objects.filter(pk=left.pk).update(used_by=stack.pk)
        return left.volume
    wanted = f"{stack.name}-{key}"
    volume = _made_by_hand(vouched, wanted) or volume_create(
        actor=stack.owner, host=stack.host, name=names.volume_name(stack, wanted)
    )
    StackVolume.objects.create(volume=volume, stack_name=stack.name, key=key, used_by=stack.pk)
    return volume


def _made_by_hand(vouched: Vouched, name: str) -> Volume | None:
    """The owner's own volume of that name, if no other stack has it."""
    stack = vouched.stack
    volume = Volume.objects.filter(
        host=stack.host,
        owner=stack.owner,
        name=name,
        kind=VolumeKind.VOLUME,
        stack_volume__isnull=True,
    ).first()
    if volume is None or _mounting_stack(stack, volume) or not vouched.may_write(volume):
        return None
    return volume


def _mounting_stack(stack: Stack, volume: Volume) -> str:
    """Another stack that has it as its own. One of which it is not noted, and whose name it does
    not begin with, mounts it as external."""
    mounting = volume.mounts.filter(workspace__stack__isnull=False).values("workspace__stack")
    others = Stack.objects.filter(pk__in=mounting).exclude(pk=stack.pk).order_by("name")
    own = (other.name for other in others if volume.name.startswith(f"{other.name}-"))
    return next(own, "")


def images_of(vouched: Vouched, wanted: set[ImageKey]) -> dict[ImageKey, UUID]:
    """The image rows that stand for these references under these policies; made when missing."""
    rows = StackImage.objects.select_related("image").filter(stack=vouched.stack)
    known = {(row.reference, row.update_policy): row for row in rows.order_by("pk")}
    # A service that changed its policy alone keeps its image; rows that the file wants stay.
    free = {key[0]: row for key, row in known.items() if key not in wanted}
    return {
        key: _image(vouched, key, known.get(key) or free.pop(key[0], None)).pk
        for key in sorted(wanted)
    }


def _image(vouched: Vouched, key: ImageKey, known: StackImage | None) -> Image:
    stack, (reference, policy) = vouched.stack, key
    image = known.image if known is not None else _left_over_image(vouched, reference)
    # A row that an upgrade has spelled otherwise than the file goes by its own spelling.
    server = image_refs.server_of(image.reference if image is not None else reference)
    registry = vouched.registry(server)
    if image is None:
        image = image_create(
            actor=stack.owner,
            host=stack.host,
            kind=ImageKind.PULL,
            name=names.image_name(stack, _image_name(stack, reference), limit=_IMAGE_NAME_LIMIT),
            reference=reference,
            registry=registry,
            update_policy=policy,
            source_by=None if vouched.source_by == stack.owner else vouched.source_by,
        )
    if known is None:
        StackImage.objects.create(
            stack=stack, reference=reference, update_policy=policy, image=image
        )
    elif known.update_policy != policy:
        StackImage.objects.filter(pk=known.pk).update(update_policy=policy)
    if image.update_policy != policy:
        image_update(actor=stack.owner, image=image, update_policy=policy)
    if image.registry_id is None and registry is not None:
        # The owner has got one since, or the stack another owner.
        image_update(actor=stack.owner, image=image, registry=registry)
    return image


def _left_over_image(vouched: Vouched, reference: str) -> Image | None:
    """Of a stack of this name that was deleted: images stay."""
    stack, name = vouched.stack, _image_name(vouched.stack, reference)
    rows = Image.objects.filter(
        host=stack.host, owner=stack.owner, reference=reference, stack_image__isnull=True
    )
    return next(
        (
            row
            for row in rows.order_by("name")
            if names.is_derived(row.name, name) and vouched.may_use(row)
        ),
        None,
    )


def _image_name(stack: Stack, reference: str) -> str:
    name = f"{stack.name}: {reference}"
    if len(name) <= _IMAGE_NAME_LIMIT:
        return name
    mark = hashlib.sha256(reference.encode()).hexdigest()[:8]
    return f"{name[: _IMAGE_NAME_LIMIT - 9]} {mark}"


def _volumes(
    vouched: Vouched, file: StackFile, services: Iterable[ServiceSpec]
) -> dict[str, Volume]:
    found: dict[str, Volume] = {}
    for mount in (mount for service in services for mount in service.mounts):
        place = mount.volume or mount.host_path
        spec = file.volumes.get(mount.volume)
        external = spec.external_name if spec is not None else ""
        if mount.host_path:
            found[place] = _bind(vouched, mount.host_path)
        elif external:
            found[place] = vouched.volume(external)
            if not mount.read_only:
                vouched.require_write(found[place])
        elif place not in found:
            found[place] = own_volume(vouched, mount.volume)
    return found


def bind_name(stack: Stack, mark: str) -> str:
    """What a folder of the host is called that the stack's file mounts."""
    return f"{stack.name}-bind-{mark}"


def _bind(vouched: Vouched, path: str) -> Volume:
    """Only whoever may mount folders of the host may have a file say so; also when it is mounted
    already, or another file could go on with what this one was allowed."""
    vouched.require_bind()
    stack = vouched.stack
    mark = hashlib.sha256(path.encode()).hexdigest()[:12]
    name = bind_name(stack, mark)
    own = Volume.objects.filter(
        host=stack.host, owner=stack.owner, kind=VolumeKind.BIND, source=path
    )
    found = next((row for row in own.order_by("name") if names.is_derived(row.name, name)), None)
    return found or volume_create(
        actor=stack.owner,
        host=stack.host,
        name=names.volume_name(stack, name),
        kind=VolumeKind.BIND,
        source=path,
    )


def _network(vouched: Vouched, file: StackFile, key: str) -> Network:
    stack, spec = vouched.stack, file.networks.get(key)
    if spec is not None and spec.external_name:
        return vouched.network(spec.external_name)
    own = StackNetwork.objects.select_related("network").filter(stack=stack, key=key).first()
    if own is not None:
        return own.network
    name = stack.name if key == DEFAULT_NETWORK else f"{stack.name}-{key}"
    network = network_create(
        actor=stack.owner,
        host=stack.host,
        name=names.network_name(stack, name),
        internal=bool(spec and spec.internal),
    )
    StackNetwork.objects.create(stack=stack, key=key, network=network)
    return network
