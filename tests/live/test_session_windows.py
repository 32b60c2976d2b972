"""How much a connection to a workspace's port may have under way, with agents old and new."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from channels.layers import get_channel_layer

from agent.protocol.sessions import LOST, PROXY, WIDE_WINDOW, WINDOW, FrameKind, SessionOpen
from hosts.streams import StreamEnd
from tests.live.session_client import soon
from tests.live.session_scene import started
from workspaces.sessions.access import Place
from workspaces.sessions.link import AgentLink

if TYPE_CHECKING:
    from tests.live.scripted_agent import AgentStream, ScriptedAgent
    from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


async def opened(
    workspace: Workspace, agent: ScriptedAgent, *, window: int
) -> tuple[AgentLink, AgentStream]:
    """A stream whose agent answers with `window`; one that does not know it says nothing."""
    place = Place(
        workspace_id=workspace.pk,
        host_id=workspace.host.pk,
        host_name=workspace.host.name,
        epoch=workspace.host.epoch,
    )
    asked = SessionOpen(kind=PROXY, workspace_id=str(workspace.pk), port=80, window=WIDE_WINDOW)
    link = await AgentLink.open(get_channel_layer(), place, asked)
    stream = await agent.opened()
    assert stream.request.window == WIDE_WINDOW
    await stream.say(opened=True, window=window)
    assert (await link.receive()).control is not None
    return link, stream


@pytest.mark.parametrize(
    ("said", "most"),
    [(0, WINDOW), (WIDE_WINDOW, WIDE_WINDOW), (64 * WIDE_WINDOW, WIDE_WINDOW), (-1, WINDOW)],
)
async def test_no_more_is_sent_than_the_agent_agreed_to(said: int, most: int) -> None:
    _, workspace, agent = await started()
    link, stream = await opened(workspace, agent, window=said)
    writing = asyncio.create_task(link.write(b"x" * (2 * WIDE_WINDOW)))
    await soon(lambda: len(stream.input) >= most, "the window is not used")
    assert len(stream.input) == most
    assert not writing.done()
    writing.cancel()
    await link.close()
    await agent.leave()


async def test_an_agent_that_sends_more_than_it_agreed_to_loses_the_stream() -> None:
    _, workspace, agent = await started()
    link, stream = await opened(workspace, agent, window=0)
    piece = b"x" * (WINDOW // 2)
    for _ in range(3):
        await stream.send(FrameKind.DATA, piece)
    await soon(lambda: stream.closed is not None, "the flood is taken")
    assert not link.is_quiet()
    await link.close()
    await agent.leave()


async def test_a_stream_whose_channel_breaks_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when Redis goes away: whoever waits for bytes would wait for ever."""
    _, workspace, agent = await started()
    link, _ = await opened(workspace, agent, window=0)

    async def broken(end: StreamEnd) -> None:
        raise ConnectionError("Redis is away")

    monkeypatch.setattr(StreamEnd, "receive", broken)
    await link.check()
    async with asyncio.timeout(5):
        last = await link.receive()
    assert last.close is not None
    assert last.close.code == LOST
    await agent.leave()
