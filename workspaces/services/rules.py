"""Rules between a workspace and the rest of its host; the caller holds the host's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from hosts.domains import read_domains, registered_elsewhere
from trailer import policy
from trailer.errors import Invalid, NotAllowed
from workspaces.models import Workspace
from workspaces.own_names import own_names
from workspaces.selectors import addresses_taken, host_ports_held, names_near
from workspaces.validation.host_limits import (
    check_name,
    check_ports,
    check_size,
    check_virtualization,
)
from workspaces.validation.start_size import START_FIELDS, check_start_size

if TYPE_CHECKING:
    from uuid import UUID

    from hosts.models import Host
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields


def check_rules(
    actor: Actor,
    new: WorkspaceFields,
    *,
    host: Host,
    old: WorkspaceFields | None = None,
    workspace_id: UUID | None = None,
) -> None:
    """Only what differs is judged: a host that shrank must not block an unrelated edit."""

    def moved(*names: str) -> bool:
        return old is None or any(getattr(old, name) != getattr(new, name) for name in names)

    if moved("nested_virtualization") and new.nested_virtualization:
        _require_privileged(actor, host)
        check_virtualization(host)
    if moved("name"):
        check_name(new.name, names_near(new.name, host_id=host.pk, other_than=workspace_id))
    if moved("memory_bytes", "cpus"):
        check_size(new, host)
    if moved(*START_FIELDS):
        check_start_size(new)
    if moved("ports"):
        _check_ports(actor, new, host, workspace_id)
    if moved("urls"):
        _check_domains(new, host, old=old)
        _check_addresses(new, workspace_id)


def _check_ports(
    actor: Actor, new: WorkspaceFields, host: Host, workspace_id: UUID | None
) -> None:
    """Names the holder of a port to who may see it."""
    held = host_ports_held(new.ports, host_id=host.pk, other_than=workspace_id)
    if not held:
        return
    rows = Workspace.objects.visible_to(actor).filter(host=host, name__in={who for _, who in held})
    seen = set(rows.values_list("name", flat=True))
    check_ports(new.ports, [(port, who if who in seen else "") for port, who in held])


def _require_privileged(actor: Actor, host: Host) -> None:
    if not policy.allows(actor, "host.privileged", host):
        sentence = (
            "nested_virtualization gives a container full access to its host. "
            "Only an administrator, or who was given the capability privileged on this host, "
            "may turn it on."
        )
        raise NotAllowed(sentence, fields={"nested_virtualization": [sentence]})


def _check_domains(new: WorkspaceFields, host: Host, *, old: WorkspaceFields | None) -> None:
    """Of new URLs on the host's router, for administrators too: what they registered is what the
    DNS leads there. Without any registered, nobody has said, and every domain is taken."""
    kept = {url.domain for url in old.urls} if old is not None else set()
    domains = ["" if url.domain in kept else url.domain for url in new.urls]
    own = {"", settings.TRAILER_URL_DOMAIN, *read_domains(host.router_domains)}
    other = registered_elsewhere(set(domains) - own, host_id=host.pk)
    for n, domain in enumerate(domains):
        if other is not None and domain == other.domain:
            sentence = f"The domain {domain} belongs to the host {other.host_name}."
        elif host.router_domains and domain not in own:
            known = ", ".join(sorted(filter(None, own)))
            sentence = (
                f"The domain {domain} is not registered for the host {host.name}. Take one of "
                f"{known}, or ask an administrator to register it in the host's settings."
            )
        else:
            continue
        raise Invalid.field(f"urls.{n}.domain", sentence)


def _check_addresses(new: WorkspaceFields, workspace_id: UUID | None) -> None:
    taken = addresses_taken(new.urls, other_than=workspace_id)
    for n, url in enumerate(new.urls):
        if f"{url.subdomain}.{url.domain}" in own_names():
            raise Invalid.field(
                f"urls.{n}.subdomain",
                f"{url.subdomain}.{url.domain} is the name of this server. "
                "Take another subdomain.",
            )
        if (url.subdomain, url.domain) in taken:
            raise Invalid.field(
                f"urls.{n}.subdomain",
                f"The address {url.subdomain}.{url.domain} is already taken. "
                "Take another subdomain.",
            )
