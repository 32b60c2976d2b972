"""First start: the administrator, the local host, and the embedded agent's credential."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import IntegrityError, transaction

from hosts.models import AgentToken, Host
from hosts.selectors import host_key
from hosts.services.enrolment import agent_token_create
from hosts.services.hosts import host_create
from trailer.accounts.models import User
from trailer.secrets import digest

if TYPE_CHECKING:
    from pathlib import Path

LOCAL_HOST_NAME = "local"


def ensure_admin(username: str, password: str) -> str | None:
    """Returns a generated password, to be shown once; None when nothing was generated."""
    chosen = password or secrets.token_urlsafe(12)
    try:
        with transaction.atomic():
            if User.objects.filter(is_superuser=True).exists():
                return None
            User.objects.create_superuser(username=username, password=chosen)
    except IntegrityError:
        # Another process started at the same moment and made it: its password counts.
        return None
    return None if password else chosen


def ensure_local_host() -> Host:
    host = Host.objects.filter(name=LOCAL_HOST_NAME).first()
    if host is not None:
        return host
    admin = User.objects.filter(is_superuser=True, is_active=True).order_by("date_joined").first()
    # A program that somebody tries out on a machine of theirs sets no rule in its packet filter
    # unasked.
    return host_create(
        actor=admin,
        name=LOCAL_HOST_NAME,
        description="The engine of this machine.",
        block_metadata=False,
    )


def ensure_identity(host: Host, state_dir: Path) -> None:
    """The agent's identity file, written anew only when its token is not valid any more."""
    path = state_dir / "identity.json"
    if path.exists() and _is_valid(host, json.loads(path.read_text())):
        return
    token = agent_token_create(host)
    host.refresh_from_db(fields=["host_key"])
    identity = {
        "token": token,
        "host_id": str(host.id),
        "host_name": host.name,
        "host_key": host_key(host),
    }
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(identity, file)
    temporary.replace(path)


def agent_state_dir() -> Path:
    data_dir: Path = settings.TRAILER_DATA_DIR
    return data_dir / "agent"


def _is_valid(host: Host, identity: dict[str, str]) -> bool:
    return AgentToken.objects.filter(
        host=host, digest=digest(identity.get("token", "")), revoked_at=None
    ).exists()
