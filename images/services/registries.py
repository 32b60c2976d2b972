"""Creating, changing and deleting registry credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from django.db import transaction
from django.utils import timezone

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from images.models import Registry
from images.refs import normalise_server
from images.registries import server_problem
from images.services.registry_tests import registry_test_forget
from images.services.retries import pulls_retry_with
from trailer import events, policy
from trailer.audit.record import record
from trailer.errors import Conflict, Invalid
from trailer.rows import row_lock
from trailer.sealed import seal
from trailer.validation import check_columns, check_one_line, check_string, check_text

if TYPE_CHECKING:
    from trailer.policy import Actor

_PASSWORD_LIMIT = 8 * 1024


class RegistryFields(TypedDict, total=False):
    server: str
    username: str
    password: str


def registry_create(
    *, actor: Actor, server: str, username: str = "", password: str = ""
) -> Registry:
    policy.require(actor, "registry.create")
    check_text({"server": server, "username": username})
    check_one_line(username, field="username", noun="The username")
    check_string(password, field="password", limit=_PASSWORD_LIMIT)
    registry = Registry(
        owner=actor,
        server=_allowed_server(actor, server),
        username=username,
    )
    registry.password_token = seal(registry, "password_token", password)
    check_columns(registry, ("server", "username"))
    with transaction.atomic():
        registry.save(force_insert=True)
        _tell_hosts(registry, trust=True)
        record("registry.create", registry, actor=actor)
        events.publish("registry", registry.pk)
    return registry


def registry_update(
    *, actor: Actor, registry: Registry, **fields: Unpack[RegistryFields]
) -> Registry:
    policy.require(actor, "registry.modify", registry)
    check_text({name: value for name, value in fields.items() if name != "password"})
    with transaction.atomic():
        current = row_lock(Registry.objects.all(), registry.pk)
        before = current.server
        if "server" in fields and normalise_server(fields["server"]) != before:
            _move(current, _allowed_server(actor, fields["server"]))
        if "username" in fields:
            check_one_line(fields["username"], field="username", noun="The username")
            current.username = fields["username"]
        if "password" in fields:
            check_string(fields["password"], field="password", limit=_PASSWORD_LIMIT)
            current.password_token = seal(current, "password_token", fields["password"])
        check_columns(current, ("server", "username"))
        registry_test_forget(current)
        current.updated_at = timezone.now()
        current.save(update_fields=["server", "username", "password_token", "updated_at"])
        _tell_hosts(current, trust=current.server != before)
        pulls_retry_with(current, actor)
        changed = [{"field": name, "from": None, "to": value} for name, value in fields.items()]
        record("registry.update", current, actor=actor, changes=changed)
        events.publish("registry", current.pk)
    return current


def registry_delete(*, actor: Actor, registry: Registry) -> None:
    policy.require(actor, "registry.delete", registry)
    with transaction.atomic():
        current = row_lock(Registry.objects.all(), registry.pk)
        if users := _users(current):
            raise Conflict(
                f"Registry {current} is used by the images {users}. Change or delete them first.",
                code="in_use",
            )
        record("registry.delete", current, actor=actor)
        events.publish("registry", current.pk, deleted=True)
        _tell_hosts(current, trust=True)
        current.delete()


def _allowed_server(actor: Actor, text: str) -> str:
    server = normalise_server(text)
    if problem := server_problem(server, actor):
        raise Invalid.field("server", problem)
    return server


def _tell_hosts(registry: Registry, *, trust: bool) -> None:
    """The credential travels in the state documents of the hosts that use it: for images, or for
    the agent's own one. With `trust` other servers than before are an administrator's, which
    every host must know."""
    ids = set(registry.images.values_list("host_id", flat=True).order_by())
    if registry.owner.is_superuser and trust:
        ids |= set(Host.objects.values_list("pk", flat=True))
    elif registry.owner.is_superuser:
        ids |= {host.pk for host in Host.objects.exclude(agent_image="", agent_image_running="")}
    for host_id in sorted(ids):
        host_desired_changed(host_id)


def _move(registry: Registry, server: str) -> None:
    """A credential goes only to its own server: images that use it pin it there."""
    if server == registry.server:
        return
    if users := _users(registry):
        raise Conflict(
            f"The images {users} use this credential for {registry.server}. "
            f"Make another registry for {server}.",
            code="in_use",
        )
    registry.server = server


def _users(registry: Registry) -> str:
    return ", ".join(registry.images.order_by("name").values_list("name", flat=True))
