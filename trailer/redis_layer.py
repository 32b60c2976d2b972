"""The channel layer on Redis: every message encrypted and signed, and none other let in.

Who can read Redis sees no byte of a terminal, and who can write to it cannot speak as the server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from channels_redis.core import BoundedQueue, RedisChannelLayer
from channels_redis.utils import decode_hosts
from cryptography.fernet import InvalidToken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

logger = logging.getLogger(__name__)

_WARN_SECONDS: Final = 60.0
_SWEEP_SECONDS: Final = 5.0
_CANCEL_SECONDS: Final = 0.1
# How late an answer may be on a busy machine.
_LATE_SECONDS: Final = 15


def _is_to_end() -> bool:
    """redis-py sends with `asyncio.wait_for`, which Python 3.11 lets swallow a cancellation that
    comes in the moment of its success: a task could outlive its loop's end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _telling(sending: Awaitable[None]) -> None:
    """Whoever was cancelled meanwhile learns it: a download went on to its end after its
    visitor's grant was gone. One that sends while it clears up was cancelled before."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    await sending
    if task and task.cancelling() > before:
        raise asyncio.CancelledError


class _Inbox(BoundedQueue):  # type: ignore[misc]
    """What arrived for one channel; a queue that is full forgets its oldest."""

    readers = 0
    written_at = 0.0


class SignedRedisChannelLayer(RedisChannelLayer):  # type: ignore[misc]
    """`keys`: the first signs, all are accepted, as it is for secrets at rest.

    All sockets of a process share one list in Redis. In the stock layer one of those that wait
    reads it for all; when that one leaves, what Redis hands it in this moment is lost or handed
    out twice: the end of one terminal cost another one its bytes. Here a task of the layer's own
    reads, as long as the loop lives, and waiting is a matter of the process alone.
    """

    def __init__(self, hosts: Any = None, *, keys: Sequence[str], **kwargs: Any) -> None:
        if not keys:
            # The stock layer would take that for "not encrypted".
            raise ValueError("The channel layer needs a key.")
        # Redis says after `brpop_timeout` seconds that nothing came. redis-py gives every answer
        # 5 s unless it is told otherwise, which is the same, and took that for a dead Redis.
        patience = self.brpop_timeout + _LATE_SECONDS
        patient = [{"socket_timeout": patience, **host} for host in decode_hosts(hosts)]
        super().__init__(patient, symmetric_encryption_keys=list(keys), **kwargs)
        self.receive_buffer: defaultdict[str, _Inbox] = defaultdict(partial(_Inbox, self.capacity))
        self._reading: asyncio.Task[None] | None = None
        self._sweep_at = 0.0
        self._dropped = 0
        self._warn_at = 0.0

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        await _telling(super().send(channel, message))

    async def group_add(self, group: str, channel: str) -> None:
        await _telling(super().group_add(group, channel))

    async def group_discard(self, group: str, channel: str) -> None:
        await _telling(super().group_discard(group, channel))

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        await _telling(super().group_send(group, message))

    async def receive(self, channel: str) -> Any:
        """The next message of a channel of this process. Raises what Redis' client raises when
        the list can't be read: memberships of groups may be gone, too."""
        self._read_along(self.non_local_name(channel))
        inbox = self.receive_buffer[channel]
        inbox.readers += 1
        stays = False
        try:
            message = await inbox.get()
            stays = True
        finally:
            inbox.readers -= 1
            if not inbox.readers and (inbox.empty() or not stays):
                self.receive_buffer.pop(channel, None)
        if isinstance(message, Exception):
            raise message
        return message

    async def close_pools(self) -> None:
        while self._reading is not None and not self._reading.done():
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=_CANCEL_SECONDS)
        await super().close_pools()

    def _read_along(self, name: str) -> None:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(name))
        elif self._reading.get_loop() is not asyncio.get_running_loop():
            raise RuntimeError("Another event loop reads this channel layer already.")

    async def _read(self, name: str) -> None:
        key = self.prefix + name
        connection = self.connection(self.consistent_hash(name))
        try:
            while not _is_to_end():
                found = await connection.bzpopmin(key, timeout=self.brpop_timeout)
                if found is not None:
                    self._distribute(found[1])
        except Exception as problem:  # noqa: BLE001 - whoever waits raises it
            for inbox in list(self.receive_buffer.values()):
                for _ in range(inbox.readers):
                    inbox.put_nowait(problem)

    def _distribute(self, content: bytes) -> None:
        try:
            message = self.deserialize(content)
        except InvalidToken:
            self._drop()
            return
        channels = message.pop("__asgi_channel__")
        now = time.monotonic()
        for channel in channels if isinstance(channels, list) else [channels]:
            inbox = self.receive_buffer[channel]
            inbox.written_at = now
            inbox.put_nowait(message)
        if now >= self._sweep_at:
            self._sweep_at = now + _SWEEP_SECONDS
            self._sweep(now - self.expiry)

    def _sweep(self, before: float) -> None:
        """Some messages come when their reader has left; the rest of a terminal's output does."""
        for channel, inbox in list(self.receive_buffer.items()):
            if not inbox.readers and inbox.written_at < before:
                del self.receive_buffer[channel]

    def _drop(self) -> None:
        self._dropped += 1
        if time.monotonic() < self._warn_at:
            return
        self._warn_at = time.monotonic() + _WARN_SECONDS
        logger.warning(
            "A message in Redis was not signed with this server's keys and was dropped. Either "
            "somebody else writes there, or not all servers have the same TRAILER_SECRET_KEYS.",
            extra={"dropped": self._dropped},
        )
