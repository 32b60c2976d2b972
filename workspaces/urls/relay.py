"""Requests for workspaces' host names: looked at, relayed to the agent, and watched while open."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from trailer.context import socket_origin
from trailer.domains import host_name
from workspaces.urls import access, entrance, tokens
from workspaces.urls.exchange import Exchange, VisitorLeft
from workspaces.urls.headers import header, is_foreign, state_value, visit_token
from workspaces.urls.pages import Answer, notice, send_answer
from workspaces.urls.switching import Switch
from workspaces.urls.tunnel import TunnelRefused, Tunnels, Unsendable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from workspaces.urls.access import Passage

logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 8.0
# Looks in a row that the database did not answer, before a visit counts as no longer allowed.
_MOST_FAILED: Final = 8
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Visit:
    """One request for a workspace's host name."""

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.asked_host = header(self.headers, b"host")
        self.host = host_name(self.asked_host)
        self.method = scope.get("method", "GET")
        self.target: bytes = scope["raw_path"]
        if scope["query_string"]:
            self.target += b"?" + scope["query_string"]
        self.client = socket_origin(scope).address
        self.is_secure = settings.SESSION_COOKIE_SECURE
        self.scheme = "https" if self.is_secure else "http"

    @property
    def is_navigation(self) -> bool:
        """Somebody looks at it, and not a program of a page."""
        mode = header(self.headers, b"sec-fetch-mode")
        if mode:
            return mode == "navigate"
        return self.method in _SAFE and "text/html" in header(self.headers, b"accept")

    @property
    def visit_token(self) -> str:
        return visit_token(self.headers, secure=self.is_secure)

    @property
    def state(self) -> str:
        return state_value(self.headers, secure=self.is_secure)

    @property
    def is_foreign(self) -> bool:
        """A page of another host may ask, but not change anything: it cannot read the answer."""
        if self.method in _SAFE and self.scope["type"] == "http":
            return False
        return is_foreign(header(self.headers, b"origin"), self.asked_host)

    async def passage(self) -> Passage:
        return await database_sync_to_async(access.passage)(self.host, self.visit_token)


class Relay:
    """An ASGI application; it also takes the scope `upgrade`, see trailer/streaming.py."""

    def __init__(self, *, check_seconds: float = CHECK_SECONDS) -> None:
        self._tunnels = Tunnels()
        self._check_seconds = check_seconds

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in {"http", "upgrade"}:
            # A web server that cannot hand the connection over.
            await send({"type": "websocket.close", "code": 1013})
            return
        visit = Visit(scope)
        way = await self._admitted(visit)
        if isinstance(way, Answer):
            await self._say(visit, send, way)
            return
        try:
            await self._carry(visit, way, receive, send)
        except VisitorLeft:
            logger.debug("a visitor of %s left early", visit.host)
        except TunnelRefused as problem:
            await self._say(visit, send, _unreachable(visit, way, problem))
        except Unsendable as problem:
            sentence = f"This request cannot be passed on: {problem}."
            await self._say(visit, send, _not_understood(sentence))

    async def _admitted(self, visit: Visit) -> Passage | Answer:
        if not visit.target.startswith(b"/") or visit.method == "CONNECT":
            return _not_understood("Ask for a path.")
        if visit.scope["path"] == entrance.ENTER_PATH:
            query = visit.scope["query_string"].decode("latin-1")
            return await database_sync_to_async(entrance.enter)(
                query, host=visit.host, state=visit.state
            )
        page = visit.is_navigation
        try:
            way = await visit.passage()
        except access.Unknown:
            sentence = f"No workspace has the address {visit.host}. Was its URL changed?"
            title = "There is no such workspace URL"
            return notice(404, title, sentence, as_page=page, code="not_found")
        except access.SignInNeeded:
            if page and visit.method in _SAFE:
                target = visit.target.decode("latin-1")
                return entrance.to_sign_in(f"{visit.scheme}://{visit.asked_host}{target}")
            sentence = "Open this address in the browser and sign in first."
            return notice(401, "Sign in first", sentence, as_page=page, code="not_signed_in")
        except access.Down as down:
            return notice(503, down.title, str(down), as_page=page, comes_soon=down.comes_soon)
        if visit.is_foreign and not way.is_public:
            sentence = "A page of another address may not do this here."
            return notice(403, "Not allowed", sentence, as_page=page, code="not_allowed")
        return way

    async def _carry(self, visit: Visit, way: Passage, receive: Any, send: Any) -> None:
        layer = get_channel_layer()
        carrier: Exchange | Switch
        if visit.scope["type"] == "upgrade":
            carrier = Switch(visit, way, receive, send)
        else:
            carrier = Exchange(visit, way, receive, send)
            if way.ticket is not None and tokens.is_ageing(visit.visit_token):
                renewed = entrance.visit_cookie(way.ticket, secure=visit.is_secure)
                carrier.extra_headers.append((b"set-cookie", renewed.encode()))
        work = asyncio.create_task(carrier.run(self._tunnels, layer))
        check = partial(self._check, visit, carrier)
        is_whole = await _watched(work, check, after=self._check_seconds)
        if not is_whole and visit.scope["type"] == "http":
            # A connection that merely falls silent would be waited for without end.
            await send({"type": "http.response.cut"})

    async def _check(self, visit: Visit, carrier: Exchange | Switch) -> None:
        """Returns when the visitor may no longer be here, or nobody could tell for long."""
        failed = 0
        while failed < _MOST_FAILED:
            try:
                await visit.passage()
                failed = 0
            except access.Down:
                # Its end is told by the connection itself.
                failed = 0
            except (DatabaseError, InterfaceError):
                failed += 1
                logger.warning("a visit to %s was not looked at", visit.host, exc_info=True)
            except (access.Unknown, access.SignInNeeded):
                break
            await carrier.keep_alive()
            await asyncio.sleep(self._check_seconds)
        logger.info("a visit to %s was ended: no longer allowed", visit.host)

    async def _say(self, visit: Visit, send: Any, answer: Answer) -> None:
        if visit.scope["type"] == "upgrade":
            await send({"type": "upgrade.refuse", "status": answer.status, "body": answer.body})
            return
        await send_answer(send, answer, is_head=visit.method == "HEAD")


async def _watched(
    work: asyncio.Task[None], check: Callable[[], Coroutine[Any, Any, None]], *, after: float
) -> bool:
    """Until the work is done; False when the check, which begins later, ended first."""
    tasks = {work}
    try:
        await asyncio.wait(tasks, timeout=after)
        if not work.done():
            tasks.add(asyncio.create_task(check()))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if work.cancelled():
        return False
    work.result()
    return True


def _not_understood(sentence: str) -> Answer:
    return notice(400, "Not understood", sentence, as_page=False, code="invalid")


def _unreachable(visit: Visit, way: Passage, problem: TunnelRefused) -> Answer:
    status = way.status_label.lower()
    if problem.is_closed:
        sentence = (
            f"{way.workspace_name} is {status}, but nothing in it listens on port {way.port} yet."
        )
        title = "Nothing answers there yet"
    else:
        title = f"This workspace is {status}"
        sentence = f"{way.workspace_name}: {problem}"
    return notice(503, title, sentence, as_page=visit.is_navigation, comes_soon=True)
