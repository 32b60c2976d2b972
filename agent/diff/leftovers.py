"""What is on the engine and not in the document: listed for the operator, never touched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent.protocol import naming
from agent.protocol.report import Leftover
from agent.steps import NETWORK, VOLUME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.diff.view import View

_BUILT_IN = frozenset({"bridge", "host", "none"})
_ANONYMOUS = re.compile(r"^[0-9a-f]{64}$")
_MOST = 500
# The agent itself and its overseer are nobody's leftovers.
_OWN_PARTS = frozenset({naming.LABEL_AGENT, naming.LABEL_AGENT_ROLE})


def find_leftovers(view: View) -> tuple[Leftover, ...]:
    found = [*_containers(view), *_networks(view), *_volumes(view)]
    return tuple(
        sorted(found, key=lambda item: (item.resource, item.name, item.engine_id))[:_MOST]
    )


def _containers(view: View) -> list[Leftover]:
    found = []
    for container in view.observed.containers:
        workspace_id = container.labels.get(naming.LABEL_WORKSPACE, "")
        if view.owns_prerequisite(container) or _OWN_PARTS & container.labels.keys():
            continue
        if not view.owns_container(container):
            reason = _stranger(container.labels)
        elif workspace_id not in view.desired_workspaces and not _ordered(view, workspace_id):
            reason = "unclaimed"
        else:
            continue
        found.append(
            Leftover(
                resource="container",
                name=container.name,
                engine_id=container.id,
                reason=reason,
            )
        )
    return found


def _networks(view: View) -> list[Leftover]:
    found = []
    for network in view.observed.networks:
        network_id = network.labels.get(naming.LABEL_NETWORK, "")
        if network.name in _BUILT_IN or view.is_platform_network(network):
            continue
        if not view.owns_network(network):
            reason = _stranger(network.labels)
        elif network_id not in view.desired_networks and not _ordered(view, network_id):
            reason = "unclaimed"
        else:
            continue
        found.append(
            Leftover(resource=NETWORK, name=network.name, engine_id=network.id, reason=reason)
        )
    return found


def _volumes(view: View) -> list[Leftover]:
    found = []
    platform = {m.source for p in view.desired.prerequisites for m in p.spec.mounts}
    for volume in view.observed.volumes:
        volume_id = volume.labels.get(naming.LABEL_VOLUME, "")
        if _ANONYMOUS.match(volume.name) or volume.name in platform:
            continue
        if not view.owns_volume(volume):
            reason = _stranger(volume.labels)
        elif volume_id not in view.desired_volumes and not _ordered(view, volume_id):
            reason = "unclaimed"
        else:
            continue
        found.append(
            Leftover(resource=VOLUME, name=volume.name, engine_id=volume.name, reason=reason)
        )
    return found


def _stranger(labels: Mapping[str, str]) -> str:
    return "impostor" if labels.get(naming.LABEL_MANAGED) == "true" else "foreign"


def _ordered(view: View, object_id: str) -> bool:
    return any(tombstone.object_id == object_id for tombstone in view.desired.tombstones)
