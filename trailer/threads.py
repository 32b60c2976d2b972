"""HTTP under ASGI, for synchronous Django: a request borrows one lasting thread and stays in it.

Django's own handler makes a thread for each request, which then opens a database connection of its
own, and goes to and fro between that thread and the loop for each middleware: together most of the
time of a short request.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import FileResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

# More at once would only wait for the interpreter and the database.
THREADS = 24


class ThreadedHandler(ASGIHandler):
    """Middleware and view run together, as under WSGI; the thread is the one used last."""

    def __init__(self, *, threads: int = THREADS) -> None:
        # Not ASGIHandler's own, which would load the middleware for its to and fro.
        super(ASGIHandler, self).__init__()
        self.load_middleware(is_async=False)
        self._free: asyncio.LifoQueue[ThreadPoolExecutor] = asyncio.LifoQueue()
        for number in range(threads):
            name = f"request-{number}"
            self._free.put_nowait(ThreadPoolExecutor(max_workers=1, thread_name_prefix=name))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        thread = await self._free.get()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await super().__call__(scope, receive, send)
        finally:
            self._free.put_nowait(thread)

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        response = await sync_to_async(self.get_response)(request)
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # its end is told by it
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        return response


def streamable(
    request: HttpRequest, pieces: Iterator[bytes]
) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The pieces in the form in which this request's server sends them one by one."""
    return _for_asgi(pieces) if isinstance(request, ASGIRequest) else pieces


async def _for_asgi(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The ASGI handler would collect a plain iterator whole before it sends the first byte."""
    while (piece := await sync_to_async(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes | None:
    return next(pieces, None)
