"""Trying a credential: asked for by a user, done by the engine of a host, told by its agent.

The server itself connects to no registry: it would reach what the user can't, and prove little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from hosts.services.observed import reported_id
from hosts.status import is_fresh
from images.choices import RegistryStatus
from images.models import Image, Registry, RegistryTest
from trailer import events, policy
from trailer.audit.record import record
from trailer.errors import Conflict
from trailer.rows import row_lock
from trailer.validation import stored_text

if TYPE_CHECKING:
    from agent.protocol.report import RegistryTested
    from trailer.policy import Actor

_MESSAGE_LIMIT: Final = 4096


def registry_test(*, actor: Actor, registry: Registry, host: Host | None = None) -> Registry:
    """Without a host, one that has images of this registry tries it, or else any that answers."""
    policy.require(actor, "registry.view", registry)
    chosen = host or _host_that_answers(actor, registry)
    policy.require(actor, "host.use", chosen)
    _check_answers(chosen)
    with transaction.atomic():
        current = row_lock(Registry.objects.all(), registry.pk)
        registry_test_forget(current)
        RegistryTest.objects.create(registry=current, host=chosen)
        host_desired_changed(chosen.pk)
        record("registry.test", current, actor=actor)
        events.publish("registry", current.pk)
    return current


def registry_test_forget(registry: Registry) -> None:
    """What was found out is true no longer. Inside the caller's transaction."""
    for test in RegistryTest.objects.filter(registry=registry):
        test.delete()
        if test.status == RegistryStatus.TESTING:
            host_desired_changed(test.host_id)


def registry_tested(host: Host, item: RegistryTested) -> bool:
    """False when nobody waits for this any more."""
    with transaction.atomic():
        row_lock(Host.objects.all(), host.pk)
        test = RegistryTest.objects.filter(
            pk=reported_id(item.test_id), host=host, status=RegistryStatus.TESTING
        ).first()
        if test is None:
            return False
        RegistryTest.objects.filter(pk=test.pk).update(
            status=RegistryStatus.ACCEPTED if item.accepted else RegistryStatus.FAILED,
            message=stored_text(item.message, _MESSAGE_LIMIT),
            finished_at=timezone.now(),
        )
        host_desired_changed(host.pk)
        events.publish("registry", test.registry_id)
    return True


def _check_answers(host: Host) -> None:
    if not host.enabled:
        raise Conflict(f"Host {host.name} is disabled. Enable it, or choose another one.")
    if not is_fresh(host, timezone.now()):
        raise Conflict(
            f"Host {host.name} is silent, and only a host can try the credential. "
            "Choose another one, or wait until it is back.",
            code="host_silent",
        )


def _host_that_answers(actor: Actor, registry: Registry) -> Host:
    uses_it = Exists(Image.objects.filter(host=OuterRef("pk"), registry=registry))
    hosts = Host.objects.usable_by(actor).filter(enabled=True).order_by(uses_it.desc(), "name")
    now = timezone.now()
    found = next((host for host in hosts if is_fresh(host, now)), None)
    if found is None:
        raise Conflict(
            "No host is online, and only a host can try the credential. "
            "Connect one, or wait until it is back.",
            code="host_silent",
        )
    return found
