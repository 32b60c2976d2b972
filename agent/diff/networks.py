"""Networks: which to make, and which engine network each desired one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from agent.diff.addresses import Addresses
from agent.diff.holders import held_by
from agent.diff.view import View, object_key
from agent.engine_requests import NetworkRequest
from agent.plan import PlanBuilder, ResourceFinding
from agent.protocol import naming
from agent.steps import NETWORK, CreateNetwork, Ref, RemoveNetwork

if TYPE_CHECKING:
    from agent.observed import ObservedNetwork
    from agent.protocol.state import DesiredNetwork

_DRIVERS = frozenset({"bridge", "macvlan"})
# Seconds until a look whether the removal that this plan orders has happened.
_UNTIL_REMOVED = 2.0


@dataclass(frozen=True)
class Ready:
    """Either a reference to use (perhaps after `node`), or why there is none yet."""

    ref: Ref | None = None
    after: tuple[int, ...] = ()
    problem: str = ""
    waiting: bool = False


def diff_networks(view: View, plan: PlanBuilder) -> dict[str, Ready]:
    addresses = Addresses(view)
    return {
        network.id: _diff_network(view, plan, network, addresses)
        for network in sorted(view.desired.networks, key=lambda n: (n.name, n.id))
    }


def _diff_network(
    view: View, plan: PlanBuilder, network: DesiredNetwork, addresses: Addresses
) -> Ready:
    key = object_key(NETWORK, network.id)
    if view.is_busy(key):
        return Ready(problem=f"Waiting for network {network.name}.", waiting=True)
    ours = _ours(view, network)
    found = ours[0] if ours else None
    if found is not None and _stored(found) in ("", _essence(network)):
        _remove_doubles(view, plan, network, ours[1:])
        _report(plan, network, "created", engine_id=found.id)
        return Ready(ref=Ref(id=found.id))
    problem = _problem(view, network, found) or addresses.problem(network)
    if problem:
        _report(plan, network, "error", message=problem)
        return Ready(problem=f"Network {network.name} is not ready: {problem}")
    if addresses.must_wait(network):
        message = "Waiting until an earlier network with these addresses is removed."
        _report(plan, network, "pending", message=message)
        plan.recheck(_UNTIL_REMOVED)
        return Ready(problem=f"Network {network.name} is not ready: {message}", waiting=True)
    addresses.take(network)
    return _create(view, plan, network, found)


def _problem(view: View, network: DesiredNetwork, found: ObservedNetwork | None) -> str:
    key = object_key(NETWORK, network.id)
    held = view.knows.refused.get(key) or view.knows.held.get(key)
    if held:
        return held
    if network.driver not in _DRIVERS:
        return f"Driver {network.driver} is not supported by this agent version."
    holder = _foreign_holder(view, network)
    if holder is not None:
        return held_by(view, holder.name, f"network {holder.id[:12]}", holder.labels)
    users = _users(view, found) if found else ()
    if users:
        return (
            f"Its settings changed, but it is still used by {', '.join(users)}; "
            "detach or stop them first."
        )
    return ""


def _create(
    view: View, plan: PlanBuilder, network: DesiredNetwork, found: ObservedNetwork | None
) -> Ready:
    key = object_key(NETWORK, network.id)
    after: tuple[int, ...] = ()
    cause = "not on the engine"
    if found is not None:
        cause = "settings changed"
        removal = RemoveNetwork(key=key, name=network.name, cause=cause, engine_id=found.id)
        after = (plan.add(removal),)
    labels = view.labels_for(NETWORK, naming.LABEL_NETWORK, network.id)
    labels[naming.LABEL_SPEC] = _essence(network)
    request = NetworkRequest(
        name=naming.network_name(network.name),
        driver=network.driver,
        internal=network.internal,
        parent_interface=network.parent_interface,
        subnet=network.subnet,
        gateway=network.gateway,
        ip_range=network.ip_range,
        labels=labels,
    )
    step = CreateNetwork(key=key, name=network.name, cause=cause, request=request)
    node = plan.add(step, after=after)
    return Ready(ref=Ref(node=node), after=(node,))


def _ours(view: View, network: DesiredNetwork) -> list[ObservedNetwork]:
    """Names are not unique on older engines: ours are the signed ones, one in use comes first."""
    ours = [
        candidate
        for candidate in view.observed.networks
        if candidate.labels.get(naming.LABEL_NETWORK) == network.id
        and view.owns_network(candidate)
    ]
    return sorted(ours, key=lambda candidate: (not _users(view, candidate), candidate.id))


def _remove_doubles(
    view: View, plan: PlanBuilder, network: DesiredNetwork, doubles: list[ObservedNetwork]
) -> None:
    """An agent that died while the engine still made the network had made it once more."""
    for double in doubles:
        if not _users(view, double):
            step = RemoveNetwork(
                key=object_key(NETWORK, network.id),
                name=network.name,
                cause="made twice by an interrupted cycle",
                engine_id=double.id,
            )
            plan.add(step)


def _foreign_holder(view: View, network: DesiredNetwork) -> ObservedNetwork | None:
    name = naming.network_name(network.name)
    return next(
        (n for n in view.observed.networks if n.name == name and not view.owns_network(n)), None
    )


def _users(view: View, network: ObservedNetwork) -> tuple[str, ...]:
    return tuple(
        sorted(
            container.name
            for container in view.observed.containers
            if any(place.network_id == network.id for place in container.attachments)
        )
    )


def _essence(network: DesiredNetwork) -> str:
    """What cannot change on a living network, in one fixed spelling."""
    fields = ("driver", "internal", "parent_interface", "subnet", "gateway", "ip_range")
    values = {name: getattr(network, name) for name in fields}
    return msgspec.json.encode(values, order="deterministic").decode()


def _stored(network: ObservedNetwork) -> str:
    return network.labels.get(naming.LABEL_SPEC, "")


def _report(
    plan: PlanBuilder,
    network: DesiredNetwork,
    status: str,
    *,
    message: str = "",
    engine_id: str = "",
) -> None:
    plan.findings.append(
        ResourceFinding(
            resource=NETWORK,
            object_id=network.id,
            status=status,
            message=message,
            engine_id=engine_id,
        )
    )
