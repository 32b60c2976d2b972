"""The sockets of a workspace's logs, exec and attach: binary frames are bytes, text is JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.db import Error as DatabaseProblem

from agent.protocol import sessions as wire
from agent.protocol.sessions import SessionClose, SessionControl
from trailer import sockets
from trailer.context import socket_origin
from trailer.errors import ApplicationError, NotAllowed, NotFound, Unavailable
from workspaces.services.timer import terminal_seen
from workspaces.sessions.access import session_noted, session_place, session_workspace
from workspaces.sessions.link import AgentLink
from workspaces.sessions.request import resize, session_request

if TYPE_CHECKING:
    from trailer.accounts.models import User

logger = logging.getLogger(__name__)

# Rights, account and the other end are looked at again this often.
CHECK_SECONDS = 8.0
_UNWELCOME = 1008
_TOO_MUCH = 1009
# What a user may have typed or pasted that the program has not read yet.
_INPUT_LIMIT = 2 * 1024 * 1024
# Closed on purpose; anything else (a reload, a cut) may be followed by a return.
_CLEAN = (1000, 1005)
_CODES = {wire.NOT_THERE: sockets.NOT_THERE, wire.BUSY: sockets.BUSY, wire.LOST: sockets.BUSY}


class SessionConsumer(sockets.PromptBytes):
    """Output, input and checks run beside each other: a slow reader can still press Ctrl-C."""

    kind: ClassVar[str]
    takes_input: ClassVar[bool] = True

    async def connect(self) -> None:
        self.link: AgentLink | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self.input: asyncio.Queue[bytes] = asyncio.Queue()
        self.input_bytes = 0
        self.is_over = False
        self.session_id = ""
        self.was_opened = False
        self.user: User | None = None
        caller = await sockets.socket_caller(self.scope)
        await self.accept()
        if caller is None:
            await self._end(sockets.NOT_SIGNED_IN)
            return
        self.user, self.token_name = caller.user, caller.token_name
        self.workspace_id = self.scope["url_route"]["kwargs"]["workspace_id"]
        self._begin(self._carry(caller))

    async def disconnect(self, code: int) -> None:
        self.is_over = True
        if self.link is None:
            # What is just being opened must be closed again, so it may not be given up here.
            return
        for task in self.tasks:
            task.cancel()
        await self.link.close(hold=code not in _CLEAN)
        if self.was_opened:
            await self._note("closed", code=code)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.link is None and not self.tasks:
            return
        if text_data is not None:
            await self._control(text_data)
        elif bytes_data and self.takes_input:
            self.input_bytes += len(bytes_data)
            if self.input_bytes > _INPUT_LIMIT:
                await self._refuse("The program reads too slowly for so much input.", _TOO_MUCH)
                return
            self.input.put_nowait(bytes_data)

    # --- the session --------------------------------------------------------------------------

    async def _carry(self, caller: sockets.Caller) -> None:
        try:
            place = await database_sync_to_async(session_place)(
                caller.user, self.workspace_id, self.kind, may_write=caller.may_write
            )
            query = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
            request = session_request(
                self.kind, query, workspace_id=self.workspace_id, user_id=caller.user.pk
            )
            self.link = await AgentLink.open(self.channel_layer, place, request)
        except ApplicationError as problem:
            await self._refuse(problem.message, _code_of(problem))
            return
        if self.is_over:
            await self.link.close()
            return
        self._begin(self._check())
        if self.takes_input:
            self._begin(self._pass_input(self.link))
        await self._deliver(self.link)

    async def _deliver(self, link: AgentLink) -> None:
        while True:
            item = await link.receive()
            if item.data:
                # Returns when the browser has room: that is what the agent's credit waits for.
                await self.send(bytes_data=item.data)
                await link.used(item.data)
            elif item.control is not None:
                await self._hear(item.control)
            elif item.close is not None:
                await self._finish(item.close)
                return

    async def _hear(self, control: SessionControl) -> None:
        if control.opened:
            self.session_id, self.was_opened = control.session, True
            await self._note("opened")
        await self._say(_shown(control))

    async def _finish(self, close: SessionClose) -> None:
        if close.exit is not None:
            await self._say({"exit": close.exit})
        if close.error:
            await self._say({"error": close.error})
        await self._end(_CODES.get(close.code, 1000))

    async def _pass_input(self, link: AgentLink) -> None:
        while True:
            data = await self.input.get()
            await link.write(data)
            self.input_bytes -= len(data)

    async def _control(self, text: str) -> None:
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and "ping" in message:
            # A page cannot see the protocol's own pings, nor that its network is gone.
            await self._say({"pong": 1})
            return
        size = resize(message.get("resize")) if isinstance(message, dict) else None
        if size is None:
            await self._say({"error": 'Send bytes, or {"resize": [columns, rows]}.'})
        elif self.link is not None and self.takes_input:
            await self.link.say(SessionControl(resize=size))

    async def _check(self) -> None:
        while not self.is_over:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self._look_again()
            except ApplicationError as problem:
                await self._refuse(problem.message, _code_of(problem))
            except DatabaseProblem:
                # It says nothing about anybody. To stop looking would leave the session open to
                # whoever loses their rights afterwards.
                continue

    async def _look_again(self) -> None:
        caller = await sockets.socket_caller(self.scope)
        if caller is None:
            await self._refuse("You are no longer signed in.", sockets.NOT_SIGNED_IN)
            return
        await database_sync_to_async(session_workspace)(
            caller.user, self.workspace_id, self.kind, may_write=caller.may_write
        )
        if self.takes_input:
            await database_sync_to_async(terminal_seen)(self.workspace_id)
        if self.link is not None:
            await self.link.check()

    # --- frames -------------------------------------------------------------------------------

    async def _refuse(self, sentence: str, code: int) -> None:
        await self._say({"error": sentence})
        await self._end(code)

    async def _say(self, message: dict[str, Any]) -> None:
        if message and not self.is_over:
            await self.send(text_data=json.dumps(message))

    async def _end(self, code: int) -> None:
        """The agent is told at once: the browser may never answer the closing."""
        if self.is_over:
            return
        self.is_over = True
        if self.link is not None:
            await self.link.close()
        await self.close(code=code)

    def _begin(self, work: Any) -> None:
        self.tasks.append(asyncio.create_task(work))

    async def _note(self, event: str, **fields: object) -> None:
        """Who was in which workspace; logs are read too often to be worth a line."""
        if self.kind != wire.LOGS and self.user is not None:
            about = {"kind": self.kind, "workspace": str(self.workspace_id)}
            about |= {"user": self.user.get_username(), "session": self.session_id}
            logger.info("session %s", event, extra={**about, **fields})
            where = socket_origin(self.scope, token_name=self.token_name)
            await database_sync_to_async(session_noted)(
                self.user, self.workspace_id, f"workspace.{self.kind}_{event}", where
            )


class LogsConsumer(SessionConsumer):
    kind = wire.LOGS
    takes_input = False


class ExecConsumer(SessionConsumer):
    kind = wire.EXEC


class AttachConsumer(SessionConsumer):
    kind = wire.ATTACH


def _code_of(problem: ApplicationError) -> int:
    if isinstance(problem, NotFound):
        return sockets.NOT_THERE
    if isinstance(problem, NotAllowed):
        return sockets.NOT_ALLOWED
    return sockets.BUSY if isinstance(problem, Unavailable) else _UNWELCOME


def _shown(control: SessionControl) -> dict[str, Any]:
    """What a client is told of the agent's words."""
    shown: dict[str, Any] = {}
    if control.session:
        shown["session"] = control.session
        if control.replay:
            shown["replay"] = control.replay
    if control.container:
        shown["container"] = control.container
    return shown
