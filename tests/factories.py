"""Rows with valid defaults for tests of the server; each function says what it makes."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone
from rest_framework.test import APIClient

from hosts.choices import VolumeKind
from hosts.models import AgentToken, Host, Network, Volume
from images.choices import TERMINAL_BUILD_STATUSES, BuildStatus, BuildTrigger, ImageKind
from images.models import Build, BuildSecret, Image, Registry
from trailer import secrets
from trailer.access.models import Capability, Grant, HostCapability, Role
from trailer.accounts.models import ApiToken, TokenScope, User
from trailer.sealed import seal
from workspaces.models import Workspace
from workspaces.stacks.choices import Phase, StackStatus, SyncOutcome, Trigger
from workspaces.stacks.file.identity import new_identity
from workspaces.stacks.models import Stack, StackRevision, Sync

_PASSWORD = "open sesame"


def _unique(noun: str) -> str:
    return f"{noun}-{uuid.uuid4().hex[:10]}"


def make_user(username: str = "", *, password: str = "", **fields: Any) -> User:
    """Without a password nobody can log in with it, and no time is spent on hashing one."""
    user = User(username=username or _unique("user"), **fields)
    if password:
        user.set_password(password)
    else:
        user.set_unusable_password()
    user.save()
    return user


def make_admin(username: str = "", **fields: Any) -> User:
    return make_user(username, is_superuser=True, is_staff=True, **fields)


def make_token(user: User, *, scope: str = TokenScope.WRITE, **fields: Any) -> str:
    """The key of a new API token of this user."""
    key = secrets.new_token("api")
    ApiToken.objects.create(
        user=user, name="test", digest=secrets.digest(key), scope=scope, **fields
    )
    return key


class JsonClient(APIClient):
    default_format = "json"


def api_client(user: User | None = None, *, scope: str = "") -> JsonClient:
    """Sends JSON and signs in with a real token; without a user it is anonymous.

    Unless told otherwise the token may do what its user may: admins need the scope admin.
    """
    client = JsonClient(enforce_csrf_checks=True)
    if user is not None:
        scope = scope or (TokenScope.ADMIN if user.is_superuser else TokenScope.WRITE)
        client.credentials(HTTP_AUTHORIZATION=f"Token {make_token(user, scope=scope)}")
    return client


def make_grant(obj: Any, subject: User | Group, role: Role, **fields: Any) -> Grant:
    """A role on this object for a user or a group."""
    who: dict[str, Any] = {"user" if isinstance(subject, User) else "group": subject}
    return Grant.objects.create(
        kind=obj._meta.model_name, object_id=obj.pk, role=role, **who, **fields
    )


def make_capability(host: Host, subject: User | Group, capability: Capability) -> HostCapability:
    """For a user or a group."""
    who: dict[str, Any] = {"user" if isinstance(subject, User) else "group": subject}
    return HostCapability.objects.create(host_id=host.pk, capability=capability, **who)


def make_group(*members: User, name: str = "") -> Group:
    group = Group.objects.create(name=name or _unique("group"))
    for member in members:
        member.groups.add(group)
    return group


def make_host(name: str = "", *, online: bool = True, **fields: Any) -> Host:
    """By default a host whose agent was heard just now."""
    seen: dict[str, Any] = {}
    if online:
        seen = {
            "last_heartbeat": timezone.now(),
            "silent_published": False,
            "epoch": 1,
            "agent_version": "0.1.0",
            "cpu_count": 8,
            "memory_bytes": 16 * 1024**3,
            "interfaces": [{"name": "eth0", "addresses": ["192.168.1.10/24"]}],
        }
    key = fields.pop("host_key", f"key-{uuid.uuid4()}")
    host = Host(name=name or _unique("host"), **{**seen, **fields})
    host.host_key = seal(host, "host_key", key)
    host.save(force_insert=True)
    return host


def make_silent_host(name: str = "", **fields: Any) -> Host:
    """A host that was heard once, but not for an hour."""
    return make_host(name, last_heartbeat=timezone.now() - timedelta(hours=1), **fields)


def make_agent_token(host: Host) -> str:
    """The bearer token of an enrolled agent of this host."""
    token = secrets.new_token("agent")
    AgentToken.objects.create(host=host, digest=secrets.digest(token))
    return token


def make_network(
    host: Host | None = None, owner: User | None = None, name: str = "", **fields: Any
) -> Network:
    return Network.objects.create(
        host=host or make_host(),
        owner=owner or make_user(),
        name=name or _unique("network"),
        **fields,
    )


def make_volume(
    host: Host | None = None, owner: User | None = None, name: str = "", **fields: Any
) -> Volume:
    return Volume.objects.create(
        host=host or make_host(),
        owner=owner or make_user(),
        name=name or _unique("volume"),
        **fields,
    )


def make_bind(
    host: Host | None = None, owner: User | None = None, source: str = "/srv/data", **fields: Any
) -> Volume:
    return make_volume(host, owner, kind=VolumeKind.BIND, source=source, **fields)


def make_registry(
    owner: User | None = None,
    *,
    server: str = "registry.example.com",
    password: str = _PASSWORD,
    **fields: Any,
) -> Registry:
    fields = {"username": "robot", **fields}
    registry = Registry(owner=owner or make_user(), server=server, **fields)
    registry.password_token = seal(registry, "password_token", password)
    registry.save(force_insert=True)
    return registry


def make_secret(image: Image, name: str = "token", value: str = _PASSWORD) -> BuildSecret:
    secret = BuildSecret(image=image, name=name)
    secret.value_token = seal(secret, "value_token", value)
    secret.save(force_insert=True)
    return secret


def make_image(
    host: Host | None = None,
    owner: User | None = None,
    name: str = "",
    *,
    status: str = BuildStatus.FINISHED,
    **fields: Any,
) -> Image:
    """A pulled image whose only build has this status."""
    kind = fields.setdefault("kind", ImageKind.PULL)
    if kind == ImageKind.PULL:
        fields.setdefault("reference", "busybox:latest")
    elif kind == ImageKind.BUILD:
        fields.setdefault("dockerfile", "FROM busybox\n")
    if status == BuildStatus.FINISHED:
        fields.setdefault("engine_id", f"sha256:{uuid.uuid4().hex * 2}")
    image = Image.objects.create(
        host=host or make_host(),
        owner=owner or make_user(),
        name=name or _unique("image"),
        status=status,
        **fields,
    )
    make_build(image, status=status)
    return image


def make_build(image: Image, *, status: str = BuildStatus.PENDING, **fields: Any) -> Build:
    """The next build row of an image; the image's own columns stay as they are."""
    now = timezone.now()
    if status != BuildStatus.PENDING:
        fields.setdefault("started_at", now)
    if status in TERMINAL_BUILD_STATUSES:
        fields.setdefault("finished_at", now)
    fields.setdefault("trigger", BuildTrigger.CREATED)
    fields.setdefault("number", image.builds.count() + 1)
    return Build.objects.create(image=image, status=status, **fields)


def make_workspace(
    host: Host | None = None,
    owner: User | None = None,
    name: str = "",
    *,
    image: Image | None = None,
    **fields: Any,
) -> Workspace:
    """A workspace that its agent has not seen yet; parts (ports, mounts, …) are added by tests."""
    owner = owner or make_user()
    host = host or (image.host if image is not None else make_host())
    return Workspace.objects.create(
        host=host,
        owner=owner,
        name=name or _unique("workspace"),
        image=image or make_image(host, owner),
        **fields,
    )


def make_stack(
    host: Host | None = None, owner: User | None = None, name: str = "", **fields: Any
) -> Stack:
    """A stack that ran once: one revision is deployed, one sync is over."""
    identity = new_identity()
    owner = owner or make_user()
    stack = Stack(
        host=host or make_host(),
        owner=owner,
        source_by=owner,
        name=name or _unique("stack"),
        recipient=identity.recipient,
        **{
            "status": StackStatus.SYNCED,
            "deployed_commit": "a" * 40,
            "repository": "https://127.0.0.1/team/app.git",
            **fields,
        },
    )
    stack.identity_token = seal(stack, "identity_token", identity.private.reveal())
    stack.save(force_insert=True)
    now = timezone.now()
    stack.deployed = StackRevision.objects.create(
        stack=stack,
        number=1,
        commit="a" * 40,
        file_name="trailer.yml",
        file_text="services: {web: {image: busybox}}",
        fingerprint="f",
        origin=stack.origin,
        source_by=stack.owner,
        deployed_at=now,
    )
    stack.save(update_fields=["deployed"])
    Sync.objects.create(
        stack=stack,
        number=1,
        trigger=Trigger.CREATED,
        phase=Phase.DONE,
        outcome=SyncOutcome.DEPLOYED,
        revision=stack.deployed,
        commit="a" * 40,
        phase_at=now,
        started_at=now,
        finished_at=now,
    )
    return stack
