"""A short run of hostile requests in process; TRAILER_FUZZ_REQUESTS makes it longer."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from django.test import TestCase

from tests.architecture.scene import AccessScene, undone
from tests.factories import (
    api_client,
    make_image,
    make_network,
    make_registry,
    make_stack,
    make_user,
    make_volume,
    make_workspace,
)
from tests.openapi import openapi
from tests.security.corpus import MARK
from tests.security.hunt import hunt
from tests.security.requests_made import Maker
from trailer.access.models import Role

if TYPE_CHECKING:
    from tests.security.requests_made import Attempt

COUNT = int(os.environ.get("TRAILER_FUZZ_REQUESTS", "500"))
SEED = int(os.environ.get("TRAILER_FUZZ_SEED", "20261116"))
FOREIGN = "tenant-mark-5c81"


class InProcess:
    """A client of the test; whatever a request changes is put back."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._client.raise_request_exception = False

    def send(self, attempt: Attempt) -> tuple[int, str]:
        with undone():
            answer = self._client.generic(
                attempt.method,
                attempt.address,
                attempt.body or b"",
                content_type="application/json",
                **{f"HTTP_{k.upper().replace('-', '_')}": v for k, v in attempt.headers.items()},
            )
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        return answer.status_code, body.decode(errors="replace")


class TestShortRun(TestCase):
    scene: ClassVar[AccessScene]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.scene = AccessScene()

    def test_no_request_breaks_the_server_or_reads_another_tenant(self) -> None:
        scene = self.scene
        # Whoever names a person by their id, to hand something over, is told the person's name.
        other = make_user("somebody", email=f"{FOREIGN}@example.com")
        image = make_image(scene.host, other, f"{FOREIGN}-image")
        volume = make_volume(scene.host, other, f"{FOREIGN}-volume")
        foreign = {
            "user": other,
            "image": image,
            "build": image.builds.get(),
            "volume": volume,
            "network": make_network(scene.host, other, f"{FOREIGN}-net"),
            "workspace": make_workspace(scene.host, other, f"{FOREIGN}-box", image=image),
            "registry": make_registry(other, server=f"{FOREIGN}.example.com"),
            "stack": make_stack(scene.host, other, f"{FOREIGN}-stack"),
        }
        ids = {
            kind: [own, *([str(foreign[kind].pk)] if kind in foreign else [])]
            for kind, own in scene.ids.items()
        }
        maker = Maker(openapi(), ids, random.Random(SEED))
        by_role = {role: client for client, role in scene.holders["workspace"]}
        clients = {
            "anonymous": api_client(),
            "stranger": scene.clients["stranger"],
            **{role.label: by_role[role] for role in Role},
            "owner": api_client(scene.owner),
            "admin": scene.clients["admin"],
            "host token": scene.clients["its host by Bearer"],
            "other host's token": scene.clients["another host by Bearer"],
        }
        callers = {role: InProcess(client) for role, client in clients.items()}
        marks = dict.fromkeys([role for role in clients if role != "admin"], FOREIGN)
        Path(MARK).unlink(missing_ok=True)
        found = hunt(maker, callers, count=COUNT, marks=marks)
        print(f"{found.sent} requests: {found.by_role()}")
        assert found.broken == []
        assert found.leaked == []
        assert not Path(MARK).exists()
        # The run means something only if requests get in, and if a look finds the marked objects.
        assert sum(n for (_, code), n in found.codes.items() if code < 300) > COUNT / 50
        for kind in ("workspaces", "images", "volumes", "networks", "registries", "stacks"):
            assert FOREIGN in scene.clients["admin"].get(f"/api/v1/{kind}/").content.decode()
