"""What becomes of an open answer while its visitor's right is looked at again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from workspaces.urls.access import SignInNeeded
from workspaces.urls.exchange import Exchange, VisitorLeft
from workspaces.urls.relay import Relay, Visit

SCOPE = {
    "type": "http",
    "method": "GET",
    "path": "/download",
    "raw_path": b"/download",
    "query_string": b"",
    "headers": [(b"host", b"box.localhost")],
    "client": ["127.0.0.1", 1],
}
START = {"type": "http.response.start", "status": 200, "headers": []}
CUT = {"type": "http.response.cut"}


class Scene:
    """A download that goes on until `done` is set, and what each look at the right says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[Exception | None] = []
        self.looked = 0
        self.done = asyncio.Event()
        self.sent: list[Any] = []
        self.trouble: Exception | None = None
        monkeypatch.setattr(Visit, "passage", lambda visit: self._passage())
        monkeypatch.setattr(Exchange, "run", lambda exchange, *args: self._run())

    async def _passage(self) -> Any:
        self.looked += 1
        said = self.looks.pop(0) if self.looks else None
        if said is not None:
            raise said
        if self.looked > 1 and not self.looks:
            self.done.set()
        return SimpleNamespace(is_public=False, ticket=None)

    async def _run(self) -> None:
        await self._send(START)
        if self.trouble is not None:
            raise self.trouble
        await self.done.wait()
        await self._send({"type": "http.response.body", "body": b"whole"})

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def visit(self) -> None:
        relay = Relay(check_seconds=0.005)
        async with asyncio.timeout(5):
            await relay(SCOPE, asyncio.Queue().get, self._send)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


async def test_an_answer_to_somebody_who_lost_the_right_is_cut_off(scene: Scene) -> None:
    """A connection that merely says nothing more looks like a slow one, for ever."""
    scene.looks = [None, None, SignInNeeded()]
    await scene.visit()
    assert scene.sent == [START, CUT]


async def test_a_moment_without_the_database_ends_no_answer(scene: Scene) -> None:
    scene.looks = [None, OperationalError("away"), OperationalError("away"), None]
    await scene.visit()
    assert scene.sent[-1]["body"] == b"whole"


async def test_a_right_that_cannot_be_looked_at_for_long_is_none(scene: Scene) -> None:
    scene.looks = [None, *[OperationalError("away")] * 50]
    await scene.visit()
    assert scene.sent == [START, CUT]
    assert 3 < scene.looked < 20


async def test_a_visitor_who_leaves_is_no_trouble(scene: Scene) -> None:
    scene.trouble = VisitorLeft()
    await scene.visit()
    assert scene.sent == [START]
