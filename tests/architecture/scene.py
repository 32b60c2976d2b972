"""The scene of the access tables: made once for a class of tests, put back after each cell."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.test import Client
from django.utils import timezone

from tests.factories import (
    api_client,
    make_admin,
    make_agent_token,
    make_grant,
    make_group,
    make_host,
    make_image,
    make_network,
    make_registry,
    make_stack,
    make_user,
    make_volume,
    make_workspace,
)
from trailer.access.models import Role
from trailer.accounts.models import ApiToken
from trailer.audit.models import AuditEntry
from trailer.audit.record import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.factories import JsonClient
    from trailer.accounts.models import User

# Objects that are shared by grants; a build is shared with its image, a sync with its stack.
SHARED = {"workspace", "image", "build", "network", "volume", "stack", "sync"}
_SHARED_WITH = {"build": "image", "sync": "stack"}


class AccessScene:
    """Objects of one owner, and everybody who may try to get at them."""

    def __init__(self) -> None:
        self.owner, self.stranger, self.admin = make_user("olga"), make_user("stan"), make_admin()
        # Its agent is too old for sessions: what needs one is answered at once, with 503.
        self.host = make_host(capabilities=["pull"])
        self.other_host = make_host()
        image = make_image(self.host, self.owner)
        self.clients: dict[str, JsonClient] = {
            "anonymous": api_client(),
            "stranger": api_client(self.stranger),
            "owner": api_client(self.owner, scope="admin"),
            "admin": api_client(self.admin),
            "reader": api_client(self.owner, scope="read"),
            "admin that may only write": api_client(self.admin, scope="write"),
        }
        for name, host in (("its host", self.host), ("another host", self.other_host)):
            token = make_agent_token(host)
            for keyword in ("Token", "Bearer"):
                client = self.clients[f"{name} by {keyword}"] = api_client()
                client.credentials(HTTP_AUTHORIZATION=f"{keyword} {token}")
        self.host_clients = [who for who in self.clients if "host by" in who]
        self.browser(self.owner)
        record("user.login", self.owner, actor=self.owner)
        self.rows: dict[str, Any] = {
            "host": self.host,
            "user": self.owner,
            "token": ApiToken.objects.filter(user=self.owner).first(),
            "network": make_network(self.host, self.owner),
            "volume": make_volume(self.host, self.owner),
            "registry": make_registry(self.owner),
            "image": image,
            "build": image.builds.get(),
            "workspace": make_workspace(self.host, self.owner, image=image),
            "stack": (stack := make_stack(self.host, self.owner)),
            "sync": stack.syncs.get(),
            "group": make_group(),
            "audit": AuditEntry.objects.latest("at"),
        }
        self.ids = {kind: str(row.pk) for kind, row in self.rows.items()}
        self.ids["session"] = str(self.owner.sessions.get().public_id)
        self.holders = {kind: self._holders(kind) for kind in SHARED}

    def browser(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    def _holders(self, kind: str) -> list[tuple[JsonClient, int]]:
        """Clients with their role on this object, from the least to the most."""
        row = self.rows[_SHARED_WITH.get(kind, kind)]
        viewer, editor, manager, member, late, left = (make_user() for _ in range(6))
        past = timezone.now() - timedelta(seconds=1)
        later = timezone.now() + timedelta(hours=1)
        make_grant(row, late, Role.MANAGER, expires_at=past)
        make_grant(row, make_group(left), Role.MANAGER)
        left.groups.clear()
        make_grant(row, viewer, Role.VIEWER, expires_at=later)
        make_grant(row, editor, Role.EDITOR)
        make_grant(row, make_group(member), Role.EDITOR)
        make_grant(row, manager, Role.MANAGER)
        roles = [(late, 0), (left, 0), (viewer, 1), (editor, 2), (member, 2), (manager, 3)]
        return [(api_client(user), role) for user, role in roles]


@contextmanager
def undone() -> Iterator[None]:
    """Whatever a cell changes is put back."""
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)
