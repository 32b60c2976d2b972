"""An agent at the end of its socket that does what a test tells it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
from asgiref.sync import sync_to_async

from agent.protocol.sessions import (
    Allowance,
    Frame,
    FrameKind,
    SessionClose,
    SessionControl,
    SessionOpen,
    decode_credit,
    decode_frame,
    encode_frame,
)
from tests.factories import make_agent_token
from tests.live.patient_socket import PatientSocket
from trailer.asgi import application

if TYPE_CHECKING:
    from hosts.models import Host


class AgentStream:
    def __init__(self, agent: ScriptedAgent, number: int, request: SessionOpen) -> None:
        self._agent = agent
        self.number = number
        self.request = request
        self.allowance = Allowance()
        self.input = b""
        self.sizes: list[tuple[int, int]] = []
        self.closed: SessionClose | None = None

    async def send(self, kind: FrameKind, payload: bytes) -> None:
        await self._agent.socket.send_to(
            bytes_data=encode_frame(Frame(kind, self.number, payload))
        )

    async def say(self, **words: Any) -> None:
        await self.send(FrameKind.CONTROL, msgspec.json.encode(SessionControl(**words)))

    async def write(self, data: bytes) -> None:
        self.allowance.spend(data)
        await self.send(FrameKind.DATA, data)

    async def close(self, **fields: Any) -> None:
        await self.send(FrameKind.CLOSE, msgspec.json.encode(SessionClose(**fields)))


class ScriptedAgent:
    """Reads its socket all the time; `opened` gives the sessions that were asked for, in turn."""

    def __init__(self, socket: PatientSocket) -> None:
        self.socket = socket
        self.streams: dict[int, AgentStream] = {}
        self.nudges = 0
        self._opened: asyncio.Queue[AgentStream] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, host: Host, *, epoch: int | None = None) -> ScriptedAgent:
        token = await sync_to_async(make_agent_token)(host)
        headers = [
            (b"authorization", f"Bearer {token}".encode()),
            (b"trailer-epoch", str(host.epoch if epoch is None else epoch).encode()),
        ]
        socket = PatientSocket(application, "/ws/agent/", headers=headers)
        assert (await socket.connect())[0]
        return cls(socket)

    async def opened(self) -> AgentStream:
        async with asyncio.timeout(5):
            return await self._opened.get()

    async def leave(self) -> None:
        self._reader.cancel()
        await self.socket.disconnect(code=1006)

    async def _read(self) -> None:
        while True:
            message = await self.socket.output_queue.get()
            if message["type"] != "websocket.send":
                return
            if message.get("text"):
                self.nudges += bool(json.loads(message["text"]).get("nudge"))
                continue
            frame = decode_frame(message["bytes"])
            assert frame is not None
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        if frame.kind is FrameKind.OPEN:
            request = msgspec.json.decode(frame.payload, type=SessionOpen)
            stream = AgentStream(self, frame.stream, request)
            self.streams[frame.stream] = stream
            self._opened.put_nowait(stream)
            return
        stream = self.streams[frame.stream]
        if frame.kind is FrameKind.DATA:
            stream.input += frame.payload
        elif frame.kind is FrameKind.CREDIT:
            stream.allowance.grant(decode_credit(frame.payload))
        elif frame.kind is FrameKind.CONTROL:
            control = msgspec.json.decode(frame.payload, type=SessionControl)
            if control.resize is not None:
                stream.sizes.append(control.resize)
        elif frame.kind is FrameKind.CLOSE:
            stream.closed = msgspec.json.decode(frame.payload, type=SessionClose)
