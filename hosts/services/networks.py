"""Creating and deleting networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from django.db import transaction

from agent.protocol import naming
from hosts.choices import NetworkDriver, TombstoneKind
from hosts.cidr import check_addresses, overlapping
from hosts.models import Host, Network
from hosts.services.desired import host_desired_changed, tombstone_create
from trailer import events, policy
from trailer.access.grants import grants_forget
from trailer.audit.record import differences, record
from trailer.errors import Conflict, Invalid
from trailer.revisions import check_revision
from trailer.rows import row_get, row_lock
from trailer.validation import check_columns, check_resource_name, check_text

if TYPE_CHECKING:
    from trailer.policy import Actor


class NetworkFields(TypedDict, total=False):
    driver: str
    internal: bool
    parent_interface: str
    subnet: str
    gateway: str
    ip_range: str


_COLUMNS = ("name", *NetworkFields.__annotations__)


def network_create(
    *, actor: Actor, host: Host, name: str, **fields: Unpack[NetworkFields]
) -> Network:
    policy.require(actor, "network.create")
    policy.require(actor, "host.networks", host)
    values = cast("dict[str, Any]", fields)
    network = Network(owner=actor, host=host, name=name, **values)
    check_resource_name(name)
    check_text(values)
    check_columns(network, _COLUMNS)
    check_addresses(subnet=network.subnet, gateway=network.gateway, ip_range=network.ip_range)
    with transaction.atomic():
        # The host's row is the lock: two requests can't both find the name or subnet free.
        current = row_lock(Host.objects.all(), host.pk)
        _check_driver(network, current)
        _check_free(network)
        network.save(force_insert=True)
        host_desired_changed(host.pk)
        record("network.create", network, actor=actor, changes=differences({}, values))
        events.publish("network", network.pk)
    return network


def network_update(
    *, actor: Actor, network: Network, expected_revision: int | None = None, **fields: object
) -> Network:
    """Engines can't change a network: only values equal to the present ones are taken."""
    policy.require(actor, "network.modify", network)
    current = row_get(Network.objects.all(), network.pk)
    check_revision(current.revision, expected_revision)
    sentence = "A network can't be changed once it is made. Delete it and create it anew."
    wrong = {
        name: [sentence]
        for name, value in fields.items()
        if (value.pk if isinstance(value, Host) else value)
        != (current.host_id if name == "host" else getattr(current, name))
    }
    if wrong:
        raise Invalid(sentence, fields=wrong)
    return current


def network_delete(
    *, actor: Actor, network: Network, expected_revision: int | None = None
) -> None:
    policy.require(actor, "network.delete", network)
    with transaction.atomic():
        row_lock(Host.objects.all(), network.host_id)
        current = row_get(Network.objects.all(), network.pk)
        # It may have been handed over meanwhile.
        policy.require(actor, "network.delete", current)
        check_revision(current.revision, expected_revision)
        users = list(current.workspaces.order_by("name").values_list("name", flat=True))
        if users:
            raise Conflict(
                f"Network {current.name} is used by {', '.join(users)}. Detach it there first.",
                code="in_use",
            )
        tombstone_create(
            host_id=current.host_id,
            kind=TombstoneKind.NETWORK,
            object_id=current.pk,
            name=naming.network_name(current.name),
        )
        grants_forget(current)
        record("network.delete", current, actor=actor)
        events.publish("network", current.pk, deleted=True)
        current.delete()


def _check_driver(network: Network, host: Host) -> None:
    if network.driver != NetworkDriver.MACVLAN:
        if network.parent_interface:
            raise Invalid.field(
                "parent_interface", "Only a macvlan network has a parent interface."
            )
        return
    for name in ("parent_interface", "subnet", "gateway"):
        if not getattr(network, name):
            raise Invalid.field(name, "A macvlan network needs this.")
    known = [str(interface.get("name", "")) for interface in host.interfaces]
    if known and network.parent_interface not in known:
        raise Invalid.field(
            "parent_interface",
            f"Host {host.name} has no interface {network.parent_interface}; "
            f"it has {', '.join(known)}.",
        )


def _check_free(network: Network) -> None:
    taken = dict(Network.objects.filter(host=network.host_id).values_list("name", "subnet"))
    if network.name in taken:
        raise Invalid.field(
            "name", f"This host has a network named {network.name} already. Choose another name."
        )
    if network.subnet and (other := overlapping(network.subnet, taken)):
        raise Invalid.field(
            "subnet",
            f"{network.subnet} overlaps with the subnet {taken[other]} of network {other}.",
        )
