"""What workspaces' containers hold outside their volumes, asked from their agents at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.protocol.sessions import LAYER, NOT_THERE, UNSUPPORTED, SessionOpen
from agent.protocol.writable_layer import SECONDS, WritableLayer
from trailer.errors import Unavailable
from trailer.layer import layer_of_this_loop
from workspaces.sessions.link import AgentLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.protocol.sessions import SessionClose
    from workspaces.sessions.access import Place

# The answer holds twenty paths of at most 4 KiB each, and JSON may escape every byte.
_MOST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Found:
    """Without a layer `problem` says why, unless there is no container that could hold one."""

    layer: WritableLayer | None = None
    problem: str = ""


async def layers_of(places: Sequence[Place], user: str) -> list[Found]:
    """One answer for each place, within three seconds."""
    async with layer_of_this_loop() as layer:
        return list(await asyncio.gather(*(_found(layer, place, user) for place in places)))


async def _found(layer: Any, place: Place, user: str) -> Found:
    try:
        async with asyncio.timeout(SECONDS):
            return await _asked(layer, place, user)
    except TimeoutError:
        return Found(
            problem=f"The agent of host {place.host_name} did not answer in {SECONDS:.0f} seconds."
        )
    except Unavailable as problem:
        return Found(problem=problem.message)


async def _asked(layer: Any, place: Place, user: str) -> Found:
    request = SessionOpen(kind=LAYER, workspace_id=str(place.workspace_id), user=user)
    link = await AgentLink.open(layer, place, request)
    data = b""
    try:
        while True:
            item = await link.receive()
            if item.close is not None:
                return _read(place, data, item.close)
            data += item.data
            if len(data) > _MOST_BYTES:
                return Found(problem=_unreadable(place))
            await link.used(item.data)
    finally:
        await link.close()


def _read(place: Place, data: bytes, close: SessionClose) -> Found:
    if close.code == NOT_THERE:
        return Found()
    if close.code == UNSUPPORTED:
        return Found(problem=f"The agent of host {place.host_name} is too old to look. Update it.")
    if close.error:
        return Found(problem=close.error)
    try:
        return Found(layer=msgspec.json.decode(data, type=WritableLayer))
    except msgspec.MsgspecError:
        return Found(problem=_unreadable(place))


def _unreadable(place: Place) -> str:
    return f"The agent of host {place.host_name} gave an answer that cannot be read."
