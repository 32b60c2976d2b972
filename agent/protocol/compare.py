"""Field-by-field comparison of two workspace specs, and what each difference does to a container.

The agent plans with it and the server's preview answers with it, so both always agree.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.protocol.report import FieldChange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.protocol.spec import MountSpec, WorkspaceSpec

NONE: Final = "none"
IN_PLACE: Final = "in_place"
REPLACE: Final = "replace"
MASK: Final = "•••"

# Spec attribute -> (the API's field name, effect of a difference).
_FIELDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("name", "name", IN_PLACE),
    ("image_ref", "image", REPLACE),
    ("command", "command", REPLACE),
    ("env", "env", REPLACE),
    ("secret_env", "secret_env", REPLACE),
    ("cpus", "cpus", REPLACE),
    ("memory_bytes", "memory_bytes", REPLACE),
    ("shm_bytes", "shm_bytes", REPLACE),
    ("gpus", "gpus", REPLACE),
    ("nested_virtualization", "nested_virtualization", REPLACE),
    ("ports", "ports", REPLACE),
    ("mounts", "mounts", REPLACE),
    ("network_ids", "networks", IN_PLACE),
    ("urls", "urls", IN_PLACE),
    ("health_check", "health_check", REPLACE),
    ("labels", "labels", REPLACE),
    ("generation", "redeploy", REPLACE),
)


def normalise(spec: WorkspaceSpec) -> WorkspaceSpec:
    """The one spelling of a spec: lists sorted, duplicates gone, empty GPU request dropped."""
    gpus = spec.gpus
    if gpus is not None and not gpus.count and not gpus.device_ids:
        gpus = None
    if gpus is not None:
        gpus = msgspec.structs.replace(gpus, device_ids=tuple(sorted(set(gpus.device_ids))))
    return msgspec.structs.replace(
        spec,
        env=dict(sorted(spec.env.items())),
        secret_env=dict(sorted(spec.secret_env.items())),
        labels=dict(sorted(spec.labels.items())),
        cpus=None if spec.cpus is None else round(float(spec.cpus), 3),
        gpus=gpus,
        ports=tuple(sorted(set(spec.ports), key=_port_key)),
        mounts=tuple(sorted(set(spec.mounts))),
        network_ids=tuple(sorted(set(spec.network_ids))),
        urls=tuple(sorted(set(spec.urls))),
    )


def stored_form(spec: WorkspaceSpec, host_key: str) -> WorkspaceSpec:
    """The spec as kept in a container label: secret values become keyed digests."""
    digests = {
        name: hmac.new(host_key.encode(), value.encode(), hashlib.sha256).hexdigest()
        for name, value in spec.secret_env.items()
    }
    return normalise(msgspec.structs.replace(spec, secret_env=digests))


def compare(
    old: WorkspaceSpec, new: WorkspaceSpec, *, router_mode: str = "none"
) -> tuple[FieldChange, ...]:
    """Differences that matter, in a fixed order; both specs in the same form (plain or stored)."""
    old, new = normalise(old), normalise(new)
    changes = []
    for attribute, field, usual_effect in _FIELDS:
        before, after = getattr(old, attribute), getattr(new, attribute)
        if before == after or (field == "image" and _is_same_image(old, new)):
            continue
        labelled = field == "urls" and router_mode == "traefik-labels"
        effect = REPLACE if labelled else usual_effect
        shown = _shown(field, before, after)
        changes.append(FieldChange(field=field, old=shown[0], new=shown[1], effect=effect))
    if _image_moved(old, new):
        changes.append(
            FieldChange(
                field="image",
                old=old.image_engine_id,
                new=new.image_engine_id,
                effect=REPLACE,
            )
        )
    return tuple(changes)


def overall_effect(changes: tuple[FieldChange, ...]) -> str:
    effects = {change.effect for change in changes}
    return next((effect for effect in (REPLACE, IN_PLACE) if effect in effects), NONE)


def downtime_reason(
    spec: WorkspaceSpec, *, writes_before: Iterable[str] = (), shared_volumes: bool = False
) -> str:
    """Why the old container must stop before the new one of `spec` starts; empty when both may
    run side by side. `writes_before` are the places where the old one can write to a mount:
    two servers on one data folder lose each other's rows, and only the service itself can say
    (`shared_volumes`) that it is made for that."""
    check = spec.health_check
    if check is None or check.test[:1] == ("NONE",):
        return "It has no health check."
    published = sorted({port.host_port for port in spec.ports if port.host_port})
    if published:
        return f"It publishes port {published[0]} of the host."
    targets = {mount.target for mount in spec.mounts if not mount.read_only}
    written = sorted(targets | set(writes_before))
    if written and not shared_volumes:
        return f"It can write to the volume at {written[0]}, and two containers must not at once."
    return ""


def replaces_without_downtime(
    spec: WorkspaceSpec, *, writes_before: Iterable[str] = (), shared_volumes: bool = False
) -> bool:
    return not downtime_reason(spec, writes_before=writes_before, shared_volumes=shared_volumes)


def _is_same_image(old: WorkspaceSpec, new: WorkspaceSpec) -> bool:
    """Another name for the same content; also while what a new reference means is still being
    fetched, since until then the old content is what is wanted."""
    return bool(old.image_engine_id) and old.image_engine_id == new.image_engine_id


def _image_moved(old: WorkspaceSpec, new: WorkspaceSpec) -> bool:
    """Same reference, other content; unknown ids never count as a difference."""
    return (
        old.image_ref == new.image_ref
        and bool(old.image_engine_id)
        and bool(new.image_engine_id)
        and old.image_engine_id != new.image_engine_id
    )


def _shown(field: str, before: Any, after: Any) -> tuple[Any, Any]:
    if field in {"env", "secret_env", "labels"}:
        return _changed_entries(field, before, after), _changed_entries(field, after, before)
    if field == "mounts":
        sides = _api_mounts(before), _api_mounts(after)
        # The same volumes from another place: then only all that is known tells them apart.
        if sides[0] != sides[1]:
            return sides
    return msgspec.to_builtins(before), msgspec.to_builtins(after)


def _api_mounts(mounts: tuple[MountSpec, ...]) -> list[dict[str, Any]]:
    return [
        {"volume": mount.volume_id, "target": mount.target, "read_only": mount.read_only}
        for mount in mounts
    ]


def _changed_entries(field: str, mine: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    entries = {key: value for key, value in mine.items() if other.get(key) != value}
    return dict.fromkeys(entries, MASK) if field == "secret_env" else entries


def _port_key(port: Any) -> tuple[int, str, int, str]:
    return (port.container_port, port.protocol, port.host_port or 0, port.host_ip)
