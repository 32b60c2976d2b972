"""Requests under ASGI: each in one lasting thread, several at once, never more than there are."""

import asyncio
import threading
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import HttpRequest, HttpResponse

from trailer.threads import ThreadedHandler

SCOPE: dict[str, Any] = {
    "type": "http",
    "http_version": "1.1",
    "method": "GET",
    "path": "/",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
}


class Scene:
    """Answers each request with the name of the thread that its view ran in."""

    def __init__(self, threads: int) -> None:
        handler: Any = ThreadedHandler(threads=threads)
        handler._middleware_chain = self.view
        self.handler = handler
        self.meet: threading.Barrier | None = None
        self.most_at_once = 0
        self._inside = 0
        self._lock = threading.Lock()

    def view(self, request: HttpRequest) -> HttpResponse:
        with self._lock:
            self._inside += 1
            self.most_at_once = max(self.most_at_once, self._inside)
        if self.meet is not None:
            self.meet.wait(5)
        with self._lock:
            self._inside -= 1
        return HttpResponse(threading.current_thread().name)

    async def ask(self) -> str:
        communicator: Any = ApplicationCommunicator
        caller = communicator(self.handler, dict(SCOPE))
        await caller.send_input({"type": "http.request", "body": b"", "more_body": False})
        start = await caller.receive_output(5)
        assert start["status"] == 200
        body: bytes = (await caller.receive_output(5))["body"]
        await caller.wait(5)
        return body.decode()


async def _nobody(message: dict[str, Any]) -> None:
    raise AssertionError(f"nothing should be answered: {message}")


@pytest.mark.asyncio
async def test_one_request_after_the_other_uses_the_same_thread() -> None:
    scene = Scene(threads=4)
    assert len({await scene.ask() for _ in range(5)}) == 1


@pytest.mark.asyncio
async def test_requests_run_beside_each_other_but_never_more_than_there_are_threads() -> None:
    scene = Scene(threads=3)
    scene.meet = threading.Barrier(3)
    names = await asyncio.gather(*(scene.ask() for _ in range(6)))
    assert len(set(names)) == 3
    assert scene.most_at_once == 3


@pytest.mark.asyncio
async def test_a_view_that_breaks_gives_its_thread_back() -> None:
    scene = Scene(threads=1)

    def broken(request: HttpRequest) -> HttpResponse:
        raise RuntimeError("no")

    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    said.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    scene.handler._middleware_chain = broken
    with pytest.raises(RuntimeError):
        await scene.handler(dict(SCOPE), said.get, _nobody)
    scene.handler._middleware_chain = scene.view
    assert await scene.ask() == "request-0_0"
