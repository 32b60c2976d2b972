"""Creating and deleting networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from django.db import transaction

from agent.protocol import naming
from agent.protocol.subnets import ChosenAddresses, address_problems, chooses_addresses
from hosts.addresses import addresses_taken
from hosts.choices import NetworkDriver, TombstoneKind
from hosts.models import Host, Network
from hosts.services.desired import host_desired_changed, tombstone_create
from trailer import events, policy
from trailer.access.grants import grants_forget
from trailer.access.reliance import object_users
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
    if chooses_addresses(chosen_addresses(network)):
        policy.require(actor, "host.addresses", host)
        network.rests_on_capability = True
    check_resource_name(name)
    check_text(values)
    check_columns(network, _COLUMNS)
    with transaction.atomic():
        # The host's row is the lock: two requests can't both find the name or subnet free.
        current = row_lock(Host.objects.all(), host.pk)
        _check_placement(network, current, actor)
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
        evicted = current.attachments.filter(evicted=True).values("workspace")
        using = current.workspaces.exclude(pk__in=evicted).order_by("name")
        users = list(using.values_list("name", flat=True))
        if users:
            raise Conflict(
                f"Network {current.name} is used by {', '.join(users)}. Detach it there first, "
                "or evict them from it.",
                code="in_use",
            )
        object_users().evicted_let_go(actor=actor, obj=current)
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


def chosen_addresses(network: Network) -> ChosenAddresses:
    return ChosenAddresses(
        driver=network.driver,
        parent_interface=network.parent_interface,
        subnet=network.subnet,
        gateway=network.gateway,
        ip_range=network.ip_range,
    )


def _check_placement(network: Network, host: Host, actor: Actor) -> None:
    """All that is wrong with it on this host, at once."""
    found: dict[str, str] = {}
    if Network.objects.filter(host=host.pk, name=network.name).exists():
        found["name"] = (
            f"This host has a network named {network.name} already. Choose another name."
        )
    chosen = chosen_addresses(network)
    if chooses_addresses(chosen):
        found |= _driver_problems(network, host)
        found |= address_problems(chosen, addresses_taken(host, actor))
    if found:
        sentence = next(iter(found.values()))
        raise Invalid(sentence, fields={name: [text] for name, text in found.items()})


def _driver_problems(network: Network, host: Host) -> dict[str, str]:
    parent = network.parent_interface
    if network.driver != NetworkDriver.MACVLAN:
        only = "Only a macvlan network has a parent interface."
        return {"parent_interface": only} if parent else {}
    needed = ("parent_interface", "subnet", "gateway")
    found = {
        name: "A macvlan network needs this." for name in needed if not getattr(network, name)
    }
    known = [str(interface.get("name", "")) for interface in host.interfaces]
    if parent and known and parent not in known:
        found["parent_interface"] = (
            f"Host {host.name} has no interface {parent}; it has {', '.join(known)}."
        )
    return found
