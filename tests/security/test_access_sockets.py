"""Every WebSocket × every kind of caller; a socket that is missing from the table fails."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from tests.architecture.scene import AccessScene
from tests.factories import make_agent_token, make_token
from tests.live.patient_socket import PatientSocket
from trailer.access.models import Role
from trailer.asgi import application
from trailer.routing import websocket_urlpatterns

pytestmark = pytest.mark.django_db(transaction=True)

NOT_SIGNED_IN, NOT_ALLOWED, NOT_THERE = 4401, 4403, 4404
# What a caller without any right gets, and the least role that gets in (None: everybody).
OPEN = 0


@dataclass(frozen=True)
class Socket:
    kind: str
    stranger: int
    viewer: int = OPEN
    editor: int = OPEN


TABLE = {
    "ws/live/": Socket("", OPEN),
    "ws/agent/": Socket("agent", NOT_SIGNED_IN),
    "ws/builds/<uuid:build_id>/log/": Socket("build", NOT_THERE),
    "ws/workspaces/<uuid:workspace_id>/logs/": Socket("workspace", NOT_THERE),
    "ws/workspaces/<uuid:workspace_id>/exec/": Socket("workspace", NOT_THERE, NOT_ALLOWED),
    "ws/workspaces/<uuid:workspace_id>/attach/": Socket("workspace", NOT_THERE, NOT_ALLOWED),
}
FOREIGN_ORIGINS = (
    *("https://evil.example", "null", "", "http://127.0.0.1:8001", "https://127.0.0.1:8000"),
    *("http://sub.localhost:8000", "http://localhost:8000.evil.example", "http://localhost"),
)


async def _code(address: str, headers: dict[str, str], expected: int = NOT_SIGNED_IN) -> int:
    """Of the closing; OPEN for a socket that stays, or is closed for want of an agent. A refusal
    that is expected is waited for, however slow the machine is."""
    quiet = 0.3 if expected == OPEN else 10
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    socket = PatientSocket(application, address, headers=sent)
    accepted, code = await socket.connect(timeout=10)
    while accepted:
        if await socket.receive_nothing(timeout=quiet):
            await socket.disconnect()
            return OPEN
        output = await socket.receive_output(timeout=10)
        if output["type"] == "websocket.close":
            code = output.get("code", 1000)
            break
    # As the server does when it has closed: the application waits for that word.
    await socket.disconnect()
    return int(code or OPEN) if code in (NOT_SIGNED_IN, NOT_ALLOWED, NOT_THERE) else OPEN


@sync_to_async
def _made() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    scene = AccessScene()
    holders: dict[str, Any] = {
        f"{kind} {role}": next(client for client, held in scene.holders[kind] if held == role)
        for kind in ("workspace", "build")
        for role in (0, *(int(role) for role in Role))
    }
    browser = scene.browser(scene.owner)
    tokens: dict[str, dict[str, str]] = {
        "anonymous": {},
        "garbage": {"authorization": "Token trl_api_nothing"},
        "stranger": {"authorization": f"Token {make_token(scene.stranger)}"},
        "owner": {"authorization": f"Token {make_token(scene.owner)}"},
        "admin": {"authorization": f"Token {make_token(scene.admin, scope='admin')}"},
        "host": {"authorization": f"Token {make_agent_token(scene.host)}"},
        "agent": {"authorization": f"Bearer {make_agent_token(scene.host)}"},
        "other agent": {"authorization": f"Bearer {make_agent_token(scene.other_host)}"},
        **{
            who: {"authorization": client._credentials["HTTP_AUTHORIZATION"]}
            for who, client in holders.items()
        },
        "cookie": {"cookie": f"sessionid={browser.cookies['sessionid'].value}"},
    }
    return scene.ids, tokens


def test_every_socket_is_in_the_table() -> None:
    assert {str(entry.pattern) for entry in websocket_urlpatterns} == set(TABLE)


async def test_every_socket_lets_in_whom_the_table_says() -> None:
    ids, callers = await _made()
    wrong: list[Any] = []
    for route, socket in TABLE.items():
        address = "/" + route.split("<")[0]
        if "<" in route:
            address += f"{ids[socket.kind]}{route.split('>')[1]}"
        expected = {
            "anonymous": NOT_SIGNED_IN,
            "garbage": NOT_SIGNED_IN,
            "host": NOT_SIGNED_IN,
            "stranger": socket.stranger,
            "owner": NOT_SIGNED_IN if socket.kind == "agent" else OPEN,
            "admin": NOT_SIGNED_IN if socket.kind == "agent" else OPEN,
        }
        if socket.kind != "agent":
            expected |= {"agent": NOT_SIGNED_IN, "other agent": NOT_SIGNED_IN}
        if socket.kind in ("workspace", "build"):
            roles = (socket.stranger, socket.viewer, socket.editor, OPEN)
            expected |= {f"{socket.kind} {role}": code for role, code in enumerate(roles)}
        # Together: most of the time goes in waiting for what does not come.
        codes = await asyncio.gather(
            *(_code(address, callers[who], code) for who, code in expected.items())
        )
        wrong += [
            (route, who, got, expected[who])
            for who, got in zip(expected, codes, strict=True)
            if got != expected[who]
        ]
    assert wrong == []


async def test_a_cookie_opens_a_socket_from_our_own_pages_only(settings: Any) -> None:
    settings.TRAILER_WS_ORIGINS = ["http://localhost:8000", "http://127.0.0.1:8000"]
    ids, callers = await _made()
    address = f"/ws/workspaces/{ids['workspace']}/logs/"
    assert await _code(address, callers["cookie"]) == NOT_SIGNED_IN
    ours = callers["cookie"] | {"origin": "http://localhost:8000"}
    assert await _code(address, ours, OPEN) == OPEN
    foreign = [callers["cookie"] | {"origin": origin} for origin in FOREIGN_ORIGINS]
    codes = await asyncio.gather(*(_code(address, headers) for headers in foreign))
    assert codes == [NOT_SIGNED_IN] * len(FOREIGN_ORIGINS)


async def test_a_token_in_the_address_opens_nothing() -> None:
    ids, callers = await _made()
    key = callers["owner"]["authorization"].removeprefix("Token ")
    for name in ("token", "access_token", "key"):
        address = f"/ws/workspaces/{ids['workspace']}/logs/?{name}={key}"
        assert await _code(address, {}) == NOT_SIGNED_IN
