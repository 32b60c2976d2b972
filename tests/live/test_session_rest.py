"""The log of a workspace over REST: one answer from the agent, as text or with a reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async

from agent.protocol.sessions import MAX_PAYLOAD
from tests.factories import api_client
from tests.live.session_client import soon
from tests.live.session_scene import session_scene, started
from workspaces.sessions import link

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_FIND", 0.5)


async def _get(client: Any, address: str) -> Any:
    """As a request is answered: in a thread that no socket waits for."""
    async with ThreadSensitiveContext():
        return await sync_to_async(client.get)(address)


@pytest.mark.parametrize("own_loop", [False, True])
async def test_rest_answers_with_the_log_as_text_from_any_loop(own_loop: bool) -> None:
    owner, workspace, agent = await started()
    client = await sync_to_async(api_client)(owner)
    address = f"/api/v1/workspaces/{workspace.pk}/logs/?tail=3&previous=1"
    asking = asyncio.create_task(
        asyncio.to_thread(client.get, address) if own_loop else _get(client, address)
    )
    stream = await agent.opened()
    asked = stream.request
    assert (asked.tail, asked.previous, asked.follow) == (3, True, False)
    await stream.say(opened=True)
    for number in range(40):
        await soon(lambda: stream.allowance.covers(b"x" * MAX_PAYLOAD), "no credit")
        await stream.write(b"%05d" % number + b"x" * (MAX_PAYLOAD - 6) + b"\n")
    await stream.close()
    answer = await asking
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert len(answer.content) == 40 * MAX_PAYLOAD
    assert answer.content.startswith(b"00000x")
    await agent.leave()


@pytest.mark.parametrize(
    ("reason", "status"), [("not_there", 404), ("busy", 503), ("lost", 503), ("", 409)]
)
async def test_rest_turns_the_agents_reason_into_a_status(reason: str, status: int) -> None:
    owner, workspace, agent = await started()
    client = await sync_to_async(api_client)(owner)
    address = f"/api/v1/workspaces/{workspace.pk}/logs/"
    asking = asyncio.create_task(_get(client, address))
    await (await agent.opened()).close(error="Not now.", code=reason)
    answer = await asking
    assert (answer.status_code, answer.json()["message"]) == (status, "Not now.")
    await agent.leave()


async def test_rest_says_so_when_no_agent_is_connected_and_refuses_nonsense() -> None:
    owner, workspace = await session_scene()
    client = await sync_to_async(api_client)(owner)
    address = f"/api/v1/workspaces/{workspace.pk}/logs/"
    answer = await _get(client, address)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    for query in ("tail=-1", "tail=x", "previous=maybe", "timestamps=2"):
        answer = await _get(client, f"{address}?{query}")
        assert answer.status_code == 400
