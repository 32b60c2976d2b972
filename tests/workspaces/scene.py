"""The people and objects that most tests of workspaces need, and what an agent would report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.protocol.report import WorkspaceStatus
from tests.factories import (
    api_client,
    make_admin,
    make_host,
    make_image,
    make_network,
    make_user,
    make_volume,
)
from workspaces.services import workspace_create, workspace_observed

if TYPE_CHECKING:
    from rest_framework.test import APIClient

    from hosts.models import Host, Network, Volume
    from images.models import Image
    from trailer.accounts.models import User
    from workspaces.models import Workspace

URL = "/api/v1/workspaces/"
CANARY = "canary-7f3a91"


@dataclass(frozen=True)
class Scene:
    """One host with an image, a volume and a network, all of `owner`."""

    owner: User
    stranger: User
    admin: User
    host: Host
    image: Image
    volume: Volume
    network: Network

    def body(self, **fields: Any) -> dict[str, Any]:
        required = {"name": "box", "host": str(self.host.pk), "image": str(self.image.pk)}
        return {**required, **fields}

    def full_body(self, **fields: Any) -> dict[str, Any]:
        """Every writable field set to something other than its default."""
        return self.body(
            **{
                "description": "For the tests.",
                "command": ["sleep", "infinity"],
                "env": {"MODE": "test"},
                "secret_env": {"PASSWORD": CANARY},
                "cpus": 1.5,
                "memory_bytes": 64 * 1024**2,
                "shm_bytes": 1024**2,
                "ports": [{"container_port": 80, "host_port": 8080}],
                "mounts": [{"volume": str(self.volume.pk), "target": "/data"}],
                "networks": [str(self.network.pk)],
                "urls": [{"subdomain": "box", "domain": "example.com", "port": 80}],
                "health_check": {"test": ["CMD", "true"], "interval": 5},
                "startup_timeout": 30,
                "drain_timeout": 3,
                "shared_volumes": True,
                "idle_stop_minutes": 90,
                "schedule": {"start": "0 8 * * 1-5", "stop": "0 18 * * 1-5"},
                "labels": {"team": "blue"},
                **fields,
            }
        )

    def create(self, **fields: Any) -> Workspace:
        return workspace_create(actor=self.owner, data=self.body(**fields))

    def create_full(self, **fields: Any) -> Workspace:
        return workspace_create(actor=self.owner, data=self.full_body(**fields))

    def client(self) -> APIClient:
        return api_client(self.owner)


def make_scene() -> Scene:
    owner, host = make_user("owner"), make_host("local")
    return Scene(
        owner=owner,
        stranger=make_user("stranger"),
        admin=make_admin("boss"),
        host=host,
        image=make_image(host, owner, "base"),
        volume=make_volume(host, owner, "data"),
        network=make_network(host, owner, "lan"),
    )


def observe(
    workspace: Workspace, status: str = "running", *, epoch: int = 1, seq: int = 1, **fields: Any
) -> bool:
    """What the host's agent would report after it has seen the present revision."""
    fields = {"revision": workspace.revision, "container_id": "c" * 64, **fields}
    item = WorkspaceStatus(seq=seq, workspace_id=str(workspace.pk), status=status, **fields)
    return workspace_observed(workspace.host, item, epoch)
